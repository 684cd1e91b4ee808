#include "config/publish.h"

#include <utility>

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

class Schema final : public Keys {
 public:
  void key(const ConfigKey& key) override {
    JsonObject out;
    out.add("description", key.meaning);
    if (key.put_named) {
      const std::string one = value(JsonObject(), key).text();
      const std::string many =
          JsonObject().add("type", "object").raw("additionalProperties", one).text();
      out.raw("anyOf", "[" + one + "," + many + "]");
    } else {
      out = value(std::move(out), key);
    }
    const auto setting = key.get();
    if (setting && !show(key, *setting).empty()) out.raw("default", json_of(key, *setting));
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
    const auto setting = key.get();
    std::string standard = setting ? show(key, *setting) : "";
    if (!standard.empty()) standard = "`" + standard + "`";
    text_ += "| `" + path_ + std::string(key.name) + "` | " + wanted(key) + " | " +
             (key.required ? "required" : standard) + " | " + (key.reloaded ? "yes" : "") + " | " +
             std::string(key.meaning) + " |\n";
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
    if (path_.empty()) {
      text_ += "### " + std::string(section.name) + "\n\n" + std::string(section.meaning) +
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

// The block of other systems is left out: its values are in our own keys by now, and an address in
// it may hold a password.
class EffectiveValues final : public Keys {
 public:
  void key(const ConfigKey& key) override {
    if (const auto setting = key.get()) out_.raw(key.name, json_of(key, *setting));
  }
  void section(const Section& section, const Inside& inside) override {
    if (section.name == "exactly_once_config") return;
    EffectiveValues in;
    inside(in);
    out_.raw(section.name, in.text());
  }
  void list(const Section& section, std::size_t size, const Element& element) override {
    JsonArray all;
    for (std::size_t i = 0; i < size; ++i) {
      EffectiveValues in;
      element(in, i);
      all.add(in.text());
    }
    out_.raw(section.name, all.text());
  }
  void others(const Section&, const std::vector<std::string>& names, const Named& named) override {
    for (const std::string& name : names) {
      EffectiveValues in;
      named(in, name);
      out_.raw(name, in.text());
    }
  }
  [[nodiscard]] std::string text() const { return out_.text(); }

 private:
  JsonObject out_;
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
  EffectiveValues values;
  describe(values, copy);
  return values.text();
}

}  // namespace hapax::config
