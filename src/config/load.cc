#include "config/load.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include <unistd.h>

#include "base/format.h"
#include "base/words.h"
#include "config/alerts.h"
#include "config/check.h"
#include "config/document.h"
#include "config/exactly_once.h"
#include "config/keys.h"
#include "config/values.h"
#include "config/workflows.h"
#include "wire/nearest.h"

namespace hapax::config {

namespace {

constexpr std::string_view kPrefix = "HAPAX_";

std::string_view kind_name(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNothing:
      return "nothing";
    case Node::Kind::kText:
      return "a single value";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a section";
  }
  return "";
}

// What YAML would not take for text unless it is in quotes.
bool is_text_by_accident(const Node& node) {
  if (node.quoted) return false;
  const std::string& text = node.text;
  return text == "true" || text == "false" || text == "null" ||
         (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos);
}

bool is_textual(Kind kind) {
  return kind == Kind::kText || kind == Kind::kSecret || kind == Kind::kName ||
         kind == Kind::kFile || kind == Kind::kAddress;
}

// One section of the file.
class Reader final : public Keys {
 public:
  Reader(const Node& map, std::string path, Loaded& loaded)
      : map_(map), path_(std::move(path)), loaded_(loaded), used_(map.entries.size(), false) {}

  void key(const ConfigKey& key) override {
    const Entry* entry = take(key.name);
    if (entry == nullptr) {
      if (key.required) misread(map_.place, path_of(key.name), "is missing");
    } else if (entry->value.kind == Node::Kind::kMap && key.put_named) {
      read_named(key, entry->value);
    } else if (entry->value.kind == Node::Kind::kList && key.put_list) {
      read_list(key, entry->value);
    } else if (!key.put) {
      misread(entry->value.place, path_of(key.name),
              "must be " + wanted_forms(key) + ", not " + found_kind(key, entry->value));
    } else if (const auto setting = read(key, *entry, path_of(key.name))) {
      key.put(*setting);
    }
  }

  void section(const Section& section, const Inside& inside) override {
    const Entry* entry = take(section.name);
    if (entry != nullptr) read_section(*entry, path_of(section.name), inside);
  }

  void list(const Section& section, std::size_t, const Element& element) override {
    const Entry* entry = take(section.name);
    if (entry == nullptr || entry->value.kind == Node::Kind::kNothing) return;
    const std::string path = path_of(section.name);
    if (entry->value.kind != Node::Kind::kList) {
      return misread(entry->value.place, path, "must be a list, not " + found(entry->value));
    }
    for (std::size_t i = 0; i < entry->value.items.size(); ++i) {
      const Node& item = entry->value.items[i];
      const std::string item_path = base::format("{}.{}", path, i);
      read_section({"", item.place, item}, item_path, [&](Keys& in) { element(in, i); });
    }
  }

  void others(const Section&, const std::vector<std::string>&, const Named& named) override {
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const Entry& entry = map_.entries[i];
      if (used_[i] || entry.name.empty()) continue;
      take(entry.name);
      read_section(entry, path_of(entry.name), [&](Keys& in) { named(in, entry.name); });
    }
  }

  void finish() {
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const Entry& entry = map_.entries[i];
      if (used_[i]) continue;
      misread(entry.place, path_of(quote_if_odd(entry.name)),
              "is not known" + wire::suggestion(entry.name, known_));
    }
  }

 private:
  [[nodiscard]] std::string path_of(std::string_view name) const {
    return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
  }
  static std::string quote_if_odd(const std::string& name) {
    const bool plain = !name.empty() && name.size() <= 60 &&
                       std::all_of(name.begin(), name.end(), [](char c) { return c > ' '; });
    return plain ? name : quote(name);
  }
  static std::string found(const Node& node) {
    return node.kind == Node::Kind::kText ? quote(node.text) : std::string(kind_name(node));
  }
  // What may be a secret is not repeated.
  static std::string found_kind(const ConfigKey& key, const Node& node) {
    return key.kind == Kind::kSecret ? std::string(kind_name(node)) : found(node);
  }
  void misread(const Place& place, const std::string& path, const std::string& what) {
    loaded_.findings.misread(place, path, path + " " + what);
  }

  // The entry of that name, and an error for each further one.
  const Entry* take(std::string_view name) {
    known_.push_back(name);
    const Entry* first = nullptr;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const Entry& entry = map_.entries[i];
      if (entry.name != name) continue;
      used_[i] = true;
      if (first == nullptr) {
        first = &entry;
        loaded_.given[path_of(name)] = entry.place;
      } else {
        misread(entry.place, path_of(name),
                base::format("is there twice, first in line {}", first->place.line));
      }
    }
    return first;
  }

  void read_section(const Entry& entry, const std::string& path, const Inside& inside) {
    const Node empty{Node::Kind::kMap, entry.place};
    const Node& node = entry.value.kind == Node::Kind::kNothing ? empty : entry.value;
    if (node.kind != Node::Kind::kMap) {
      return misread(node.place, path, "must be a section, not " + found(node));
    }
    Reader in(node, path, loaded_);
    inside(in);
    in.finish();
  }

  std::optional<SettingValue> read(const ConfigKey& key, const Entry& entry,
                                   const std::string& path) {
    const Node& node = entry.value;
    if (node.kind == Node::Kind::kNothing) {
      misread(entry.place, path, "has no value; it must be " + wanted(key));
    } else if (node.kind != Node::Kind::kText) {
      misread(node.place, path, "must be " + wanted(key) + ", not " + found(node));
    } else if (is_textual(key.kind) && is_text_by_accident(node)) {
      misread(node.place, path, "must be " + wanted(key) + "; write it in quotes");
    } else if (node.quoted && (key.kind == Kind::kFlag || key.kind == Kind::kNumber)) {
      misread(node.place, path, "must be " + wanted(key) + "; write it without quotes");
    } else if (const auto setting = parse(key, node.text)) {
      return *setting;
    } else {
      misread(node.place, path, setting.error().detail);
    }
    return std::nullopt;
  }

  void read_list(const ConfigKey& key, const Node& list) {
    std::vector<SettingValue> settings;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      const Node& item = list.items[i];
      const std::string path = base::format("{}.{}", path_of(key.name), i);
      if (const auto setting = read(key, {"", item.place, item}, path)) {
        settings.push_back(*setting);
      }
    }
    if (list.items.empty()) misread(list.place, path_of(key.name), "must not be an empty list");
    key.put_list(settings);
  }

  void read_named(const ConfigKey& key, const Node& map) {
    Reader in(map, path_of(key.name), loaded_);
    for (const Entry& entry : map.entries) {
      ConfigKey named = key;
      named.name = entry.name;
      named.put_named = nullptr;
      named.put = [&](const SettingValue& setting) { key.put_named(entry.name, setting); };
      if (!in.loaded_.given.contains(in.path_of(entry.name))) in.key(named);
    }
  }

  const Node& map_;
  const std::string path_;
  Loaded& loaded_;
  std::vector<bool> used_;
  std::vector<std::string_view> known_;
};

// Overrides by variables.
class Overrides final : public Keys {
 public:
  Overrides(std::span<const Variable> variables, Loaded& loaded)
      : variables_(variables), loaded_(loaded) {}

  void key(const ConfigKey& key) override {
    if (!key.put) return;
    const std::string name = name_ + base::upper(key.name);
    known_.push_back(name);
    for (const Variable& variable : variables_) {
      if (variable.name != name) continue;
      const auto setting = parse(key, variable.value);
      if (setting) {
        key.put(*setting);
        loaded_.given[path_ + std::string(key.name)] = {name};
      } else {
        loaded_.findings.misread({name}, path_ + std::string(key.name), setting.error().detail);
      }
    }
  }
  void section(const Section& section, const Inside& inside) override {
    if (name_ == kPrefix) sections_.push_back(name_ + base::upper(section.name));
    const std::string name = std::exchange(name_, name_ + base::upper(section.name) + "_");
    const std::string path = std::exchange(path_, path_ + std::string(section.name) + ".");
    inside(*this);
    name_ = name;
    path_ = path;
  }
  void list(const Section& section, std::size_t, const Element&) override {
    if (name_ == kPrefix) sections_.push_back(name_ + base::upper(section.name));
  }
  void others(const Section&, const std::vector<std::string>&, const Named&) override {}

  // Whatever looks like an override and is none.
  void finish() {
    const std::vector<std::string_view> known(known_.begin(), known_.end());
    for (const Variable& variable : variables_) {
      if (std::find(known_.begin(), known_.end(), variable.name) != known_.end()) continue;
      const auto is_meant = [&](const std::string& section) {
        return variable.name == section || variable.name.starts_with(section + "_");
      };
      if (!std::any_of(sections_.begin(), sections_.end(), is_meant)) continue;
      std::string what = "overrides no key; lists and named sections are in the file only";
      if (const auto near = wire::nearest(variable.name, known)) {
        what += "; did you mean " + std::string(*near) + "?";
      }
      loaded_.findings.error({variable.name}, std::move(what));
    }
  }

 private:
  std::span<const Variable> variables_;
  Loaded& loaded_;
  std::string name_{kPrefix};
  std::string path_;
  std::vector<std::string> known_;
  std::vector<std::string> sections_;
};

void read_tree(const ConfigFile& file, Loaded& loaded) {
  const Node root = read_document(file.name, file.text, loaded.findings);
  if (root.kind == Node::Kind::kNothing) return;
  read_node(root, loaded, [&](Keys& keys) { describe(keys, loaded.config); });
}

// A stream that does not say its window has that of its tenant.
void fill_windows(Loaded& loaded) {
  std::vector<Stream>& streams = loaded.config.streams;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (loaded.given.contains(base::format("streams.{}.window_s", i))) continue;
    streams[i].settings.window = loaded.config.tenants.window_of(streams[i].tenant);
  }
}

}  // namespace

void read_node(const Node& root, Loaded& loaded, const Keys::Inside& inside) {
  if (root.kind != Node::Kind::kMap) {
    return loaded.findings.misread(
        root.place, "",
        "a configuration is a section with keys, not " + std::string(kind_name(root)));
  }
  Reader reader(root, "", loaded);
  inside(reader);
  reader.finish();
}

Result<ConfigFile> read_file(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  ConfigFile file{name, std::string(kDocumentBytesMax + 1, '\0')};
  if (in) in.read(file.text.data(), static_cast<std::streamsize>(file.text.size()));
  if (!in.is_open() || in.bad()) {
    return Error{Errc::kInvalidArgument, name + ": " + std::strerror(errno)};
  }
  file.text.resize(static_cast<std::size_t>(in.gcount()));
  return file;
}

std::vector<Variable> environment() {
  std::vector<Variable> variables;
  for (char** one = ::environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view text = *one;
    const std::size_t equals = text.find('=');
    if (!text.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    variables.push_back(
        {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
  }
  return variables;
}

Loaded load(const std::optional<ConfigFile>& file, std::span<const Variable> variables) {
  Loaded loaded;
  if (file) read_tree(*file, loaded);
  Overrides overrides(variables, loaded);
  describe(overrides, loaded.config);
  overrides.finish();
  apply_exactly_once(loaded.config, loaded.given, loaded.findings);
  fill_windows(loaded);
  apply_workflows(loaded.config, loaded.given, loaded.findings);
  apply_alerts(loaded.config, loaded.given, loaded.findings);
  check_whole(loaded.config, loaded.given, loaded.findings);
  loaded.findings.finish();
  return loaded;
}

}  // namespace hapax::config
