#include "config/publish.h"

#include <set>
#include <utility>

#include "base/format.h"
#include "config/keys.h"
#include "config/values.h"
#include "wire/json_text.h"

namespace hapax::config {

namespace {

using wire::json_text;
using wire::JsonArray;
using wire::JsonObject;

// JSON of ours with a line for every member.
std::string spread(std::string_view json) {
  std::string out;
  std::size_t depth = 0;
  bool quoted = false;
  const auto new_line = [&] { out += "\n" + std::string(depth * 2, ' '); };
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted && c == '\\') {
      out += c;
      out += json[++i];
      continue;
    }
    if (c == '"') quoted = !quoted;
    // A list of words stays in its line.
    if (const std::size_t end = json.find(']', i);
        !quoted && c == '[' && json.substr(i, end - i).find('{') == std::string_view::npos) {
      out += json.substr(i, end + 1 - i);
      i = end;
      continue;
    }
    if (!quoted && (c == '}' || c == ']') && json[i - 1] != '{' && json[i - 1] != '[') {
      --depth;
      new_line();
    }
    out += c;
    if (quoted) continue;
    if ((c == '{' || c == '[') && json[i + 1] != '}' && json[i + 1] != ']') {
      ++depth;
      new_line();
    }
    if (c == ',') new_line();
    if (c == ':') out += ' ';
  }
  return out + "\n";
}

std::string json_of(const ConfigKey& key, const SettingValue& setting) {
  const bool text = !std::holds_alternative<bool>(setting) && key.kind != Kind::kNumber;
  return text ? json_text(show(key, setting)) : show(key, setting);
}

std::string pattern_of(const ConfigKey& key) {
  const std::string span = "(([0-9]+(ms|s|m|h|d|w))+|P[0-9WDTHMS]+)";
  switch (key.kind) {
    case Kind::kSize:
      return "^[0-9]+(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)?$";
    case Kind::kWindow:
      return "^(forever|" + span + ")$";
    default:
      return "^" + span + "$";
  }
}

// What holds if nobody says; nothing if nothing does.
std::optional<SettingValue> default_of(const ConfigKey& key) {
  const auto setting = key.get ? key.get() : std::nullopt;
  const auto usual = setting ? setting : key.standard;
  return usual && !show(key, *usual).empty() ? usual : std::nullopt;
}

std::string default_json(const ConfigKey& key) {
  if (const auto usual = default_of(key)) return json_of(key, *usual);
  JsonArray items;
  for (const SettingValue& item : key.standard_list) items.add(json_of(key, item));
  return key.standard_list.empty() ? "" : items.text();
}

// For people.
std::string default_text(const ConfigKey& key) {
  std::string text;
  if (const auto usual = default_of(key)) text = show(key, *usual);
  for (const SettingValue& item : key.standard_list) {
    text += (text.empty() ? "" : ", ") + show(key, item);
  }
  return text.empty() ? "" : "`" + text + "`";
}

class Schema final : public Keys {
 public:
  void key(const ConfigKey& key) override {
    JsonObject out;
    out.add("description", key.meaning);
    const std::string one = value(JsonObject(), key).text();
    JsonArray forms;
    if (key.put) forms.add(one);
    if (key.put_named) {
      forms.add(JsonObject().add("type", "object").raw("additionalProperties", one).text());
    }
    if (key.put_list) {
      forms.add(JsonObject().add("type", "array").raw("items", one).add("minItems", 1).text());
    }
    if (key.put_named || key.put_list) {
      out.raw("anyOf", forms.text());
    } else {
      out = value(std::move(out), key);
    }
    if (const std::string usual = default_json(key); !usual.empty()) out.raw("default", usual);
    properties_.raw(key.name, out.text());
    if (key.required) required_.add(json_text(key.name));
  }
  void section(const Section& section, const Inside& inside) override {
    Schema in;
    inside(in);
    properties_.raw(section.name, in.object(section.meaning, true));
  }
  void list(const Section& section, std::size_t, const Element& element) override {
    Schema in;
    element(in, 0);
    properties_.raw(section.name, JsonObject()
                                      .add("description", section.meaning)
                                      .raw("type", R"(["array","null"])")
                                      .raw("items", in.object("", false))
                                      .text());
  }
  void others(const Section& section, const std::vector<std::string>&,
              const Named& named) override {
    Schema in;
    named(in, std::string(section.name));
    others_ = in.object(section.meaning, true);
  }

  [[nodiscard]] std::string object(std::string_view meaning, bool nothing_is_empty) const {
    JsonObject out;
    if (!meaning.empty()) out.add("description", meaning);
    return fill(std::move(out), nothing_is_empty).text();
  }
  [[nodiscard]] JsonObject fill(JsonObject out, bool nothing_is_empty) const {
    out.raw("type", nothing_is_empty ? R"(["object","null"])" : R"("object")");
    out.raw("additionalProperties", others_).raw("properties", properties_.text());
    if (required_.text() != "[]") out.raw("required", required_.text());
    return out;
  }

 private:
  static JsonObject bounded(JsonObject out, std::uint64_t least, std::uint64_t most) {
    out.add("minimum", least);
    if (most != Bounds{}.most) out.add("maximum", most);
    return out;
  }

  static JsonObject value(JsonObject out, const ConfigKey& key) {
    switch (key.kind) {
      case Kind::kFlag:
        return std::move(out.add("type", "boolean"));
      case Kind::kNumber:
        return bounded(std::move(out.add("type", "integer")), key.bounds.least, key.bounds.most);
      case Kind::kSize:
        out.raw("type", R"(["integer","string"])").add("pattern", pattern_of(key));
        return bounded(std::move(out), key.bounds.least, key.bounds.most);
      case Kind::kDuration:
      case Kind::kWindow:
        out.raw("type", has_unit(key) ? R"(["integer","string"])" : R"("string")");
        return std::move(out.add("pattern", pattern_of(key)));
      case Kind::kWord: {
        JsonArray words;
        for (const auto word : key.words) words.add(json_text(word));
        return std::move(out.raw("enum", words.text()));
      }
      default:
        return std::move(out.add("type", "string"));
    }
  }

  JsonObject properties_;
  JsonArray required_;
  std::string others_ = "false";
};

// A table for each top section.
class ReferenceTables final : public Keys {
 public:
  void key(const ConfigKey& key) override {
    text_ += "| `" + path_ + std::string(key.name) + "` | " + wanted_forms(key) + " | " +
             (key.required ? "required" : default_text(key)) + " | " + (key.reloaded ? "yes" : "") +
             " | " + std::string(key.meaning) + " |\n";
  }
  void section(const Section& section, const Inside& inside) override {
    within(section, std::string(section.name) + ".", inside);
  }
  void list(const Section& section, std::size_t, const Element& element) override {
    within(section, std::string(section.name) + "[].", [&](Keys& in) { element(in, 0); });
  }
  void others(const Section& section, const std::vector<std::string>&,
              const Named& named) override {
    const std::string name(section.name);
    within(section, name + ".", [&](Keys& in) { named(in, name); });
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void within(const Section& section, const std::string& step, const Inside& inside) {
    if (section.table == Section::Table::kNone) {
      text_ += "| `" + path_ + step.substr(0, step.size() - 1) + "` | a section |  |  | " +
               std::string(section.meaning) + " |\n";
      return;
    }
    const bool own = section.table == Section::Table::kOwn;
    if (path_.empty() || own) {
      text_ += (own ? "\n#### " : "### ") + std::string(section.name) + "\n\n" +
               std::string(section.meaning) +
               ".\n\n| key | value | default | SIGHUP | meaning |\n|---|---|---|---|---|\n";
    }
    const std::string path = std::exchange(path_, path_ + step);
    inside(*this);
    path_ = path;
    if (path_.empty()) text_ += "\n";
  }

  std::string path_;
  std::string text_;
};

std::string value_json(const ConfigKey& key, const std::string& name, const SettingValue& setting,
                       Secrets secrets) {
  if (!key.shown || secrets == Secrets::kWritten) return json_of(key, setting);
  return json_text(key.shown(name, std::get<std::string>(setting)));
}

// Lists hold no secrets.
std::string list_json(const ConfigKey& key) {
  JsonArray items;
  for (const auto& item : key.get_list ? key.get_list() : std::vector<SettingValue>{}) {
    items.add(json_of(key, item));
  }
  return items.text();
}

// The block of other systems is left out: its values are in our own keys by now, and an address in
// it may hold a password.
class EffectiveValues final : public Keys {
 public:
  enum class Empty : bool { kLeftOut, kWritten };
  EffectiveValues(Secrets secrets, Empty empty) : secrets_(secrets), empty_(empty) {}

  void key(const ConfigKey& key) override {
    if (const auto setting = key.get ? key.get() : std::nullopt) {
      const std::string json = value_json(key, "", *setting, secrets_);
      if (json != "\"\"" || empty_ == Empty::kWritten) out_.raw(key.name, json);
    }
    if (const std::string items = list_json(key); items != "[]") out_.raw(key.name, items);
    const auto named = key.get_named ? key.get_named() : std::map<std::string, SettingValue>{};
    JsonObject values;
    for (const auto& [name, setting] : named) {
      values.raw(name, value_json(key, name, setting, secrets_));
    }
    if (!named.empty()) out_.raw(key.name, values.text());
  }
  void section(const Section& section, const Inside& inside) override {
    if (section.name == "exactly_once_config") return;
    EffectiveValues in(secrets_, empty_);
    inside(in);
    add(section.name, in.text(), "{}");
  }
  void list(const Section& section, std::size_t size, const Element& element) override {
    JsonArray all;
    for (std::size_t i = 0; i < size; ++i) {
      EffectiveValues in(secrets_, empty_);
      element(in, i);
      all.add(in.text());
    }
    add(section.name, all.text(), "[]");
  }
  void others(const Section&, const std::vector<std::string>& names, const Named& named) override {
    for (const std::string& name : names) {
      EffectiveValues in(secrets_, empty_);
      named(in, name);
      out_.raw(name, in.text());
    }
  }
  [[nodiscard]] std::string text() const { return out_.text(); }

 private:
  void add(std::string_view name, const std::string& json, std::string_view nothing) {
    if (json != nothing || empty_ == Empty::kWritten) out_.raw(name, json);
  }

  const Secrets secrets_;
  const Empty empty_;
  JsonObject out_;
};

class ValuesByPath final : public Keys {
 public:
  enum class Which : std::uint8_t { kAll, kFixed };  // kFixed: those that SIGHUP does not change

  explicit ValuesByPath(Which which = Which::kAll) : which_(which) {}
  std::map<std::string, ShownValue> all;

  void key(const ConfigKey& key) override {
    if (which_ == Which::kFixed && key.reloaded) return;
    const std::string path = path_ + std::string(key.name);
    if (const auto setting = key.get ? key.get() : std::nullopt) add(path, key, "", *setting);
    if (const std::string items = list_json(key); items != "[]") all[path] = {items, items};
    const auto named = key.get_named ? key.get_named() : std::map<std::string, SettingValue>{};
    for (const auto& [name, setting] : named) add(path + "." + name, key, name, setting);
  }
  void section(const Section& section, const Inside& inside) override {
    within(std::string(section.name), inside);
  }
  void list(const Section& section, std::size_t size, const Element& element) override {
    for (std::size_t i = 0; i < size; ++i) {
      within(base::format("{}.{}", section.name, i), [&](Keys& in) { element(in, i); });
    }
  }
  void others(const Section&, const std::vector<std::string>& names, const Named& named) override {
    for (const std::string& name : names) within(name, [&](Keys& in) { named(in, name); });
  }

 private:
  void add(const std::string& path, const ConfigKey& key, const std::string& name,
           const SettingValue& setting) {
    const ShownValue value{value_json(key, name, setting, Secrets::kWritten),
                           value_json(key, name, setting, Secrets::kHidden)};
    if (value.written != "\"\"") all[path] = value;
  }
  void within(const std::string& step, const Inside& inside) {
    const std::string path = std::exchange(path_, path_ + step + ".");
    inside(*this);
    path_ = path;
  }

  const Which which_;
  std::string path_;
};

}  // namespace

std::string json_schema() {
  Config config;
  Schema schema;
  describe(schema, config);
  JsonObject out;
  out.add("$schema", "https://json-schema.org/draft/2020-12/schema");
  out.add("title", "Configuration of hapax serve");
  return spread(schema.fill(std::move(out), true).text());
}

std::string reference_tables() {
  Config config;
  ReferenceTables tables;
  describe(tables, config);
  return tables.text();
}

std::string to_json(const Config& config) {
  Config copy = config;
  EffectiveValues values(Secrets::kHidden, EffectiveValues::Empty::kWritten);
  describe(values, copy);
  return values.text();
}

std::string values_as_json(const Keys::Inside& inside, Secrets secrets) {
  EffectiveValues values(secrets, EffectiveValues::Empty::kLeftOut);
  inside(values);
  return values.text();
}

std::map<std::string, std::string> fixed_values(const Config& config) {
  Config copy = config;
  ValuesByPath values(ValuesByPath::Which::kFixed);
  describe(values, copy);
  std::map<std::string, std::string> fixed;
  for (const auto& [path, value] : values.all) {
    const bool applied = path.starts_with("workflows.") || path.starts_with("delivery.");
    if (!applied) fixed[path] = value.written;
  }
  return fixed;
}

std::vector<std::string> changed_blocks(const std::map<std::string, std::string>& before,
                                        const std::map<std::string, std::string>& after) {
  std::set<std::string> changed;
  const auto compare = [&](const auto& some, const auto& others) {
    for (const auto& [path, value] : some) {
      const auto found = others.find(path);
      if (found == others.end() || found->second != value) {
        changed.insert(path.substr(0, path.find('.')));
      }
    }
  };
  compare(before, after);
  compare(after, before);
  return {changed.begin(), changed.end()};
}

std::map<std::string, ShownValue> values_by_path(const Keys::Inside& inside) {
  ValuesByPath values;
  inside(values);
  return std::move(values.all);
}

}  // namespace hapax::config
