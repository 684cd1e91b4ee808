// Every key of the configuration, described once: its name, kind, bounds, default and meaning, and
// where its value goes. Whoever reads, checks or explains a configuration is a Keys that describe()
// walks through.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.h"

namespace hapax::config {

enum class Kind : std::uint8_t {
  kFlag,
  kNumber,
  kSize,      // bytes
  kDuration,  // milliseconds
  kWindow,    // seconds, or kForever
  kWord,      // index of one of ConfigKey::words
  kText,
  kSecret,   // text in which secrets stand by reference
  kName,     // of a stream or tenant
  kAddress,  // to listen on
  kFile,
};

// A value of any kind. Numbers are in the unit of the kind.
using SettingValue = std::variant<bool, std::uint64_t, std::string>;
inline constexpr std::uint64_t kForever = std::numeric_limits<std::uint64_t>::max();

struct Bounds {
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
};

struct ConfigKey {
  std::string_view name;
  Kind kind = Kind::kText;
  std::string_view meaning;
  Bounds bounds{};
  std::span<const std::string_view> words{};
  bool required = false;
  bool reloaded = false;  // SIGHUP is enough
  std::function<void(SettingValue)> put{};
  std::function<std::optional<SettingValue>()> get{};  // nothing: it is not set
  // What holds if it is not set, where somebody else decides that: shown as the default.
  std::optional<SettingValue> standard{};
  std::vector<SettingValue> standard_list{};
  // If there: a map of names to such values may stand in the place of one.
  std::function<void(const std::string& name, SettingValue)> put_named{};
  std::function<std::map<std::string, SettingValue>()> get_named{};
  // If there: a list of such values may. Without `put`, one alone may not.
  std::function<void(const std::vector<SettingValue>&)> put_list{};
  std::function<std::vector<SettingValue>()> get_list{};
  // If there: what people are shown of a text. The name is that of put_named, or empty.
  std::function<std::string(const std::string& name, const std::string& text)> shown{};
};

struct Section {
  // On the reference page: rows of the section around it, a table of its own (comes after all keys
  // of the section around it), or one row that says where the keys are explained.
  enum class Table : std::uint8_t { kShared, kOwn, kNone };
  std::string_view name;
  std::string_view meaning;
  Table table = Table::kShared;
};

class Keys {
 public:
  Keys() = default;
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;
  virtual ~Keys() = default;

  using Inside = std::function<void(Keys&)>;
  using Element = std::function<void(Keys&, std::size_t index)>;      // made if it is not there
  using Named = std::function<void(Keys&, const std::string& name)>;  // as is one of a new name

  virtual void key(const ConfigKey& key) = 0;
  virtual void section(const Section& section, const Inside& inside) = 0;
  virtual void list(const Section& section, std::size_t size, const Element& element) = 0;
  // Sections under names that the user chooses. Comes last in its section.
  virtual void others(const Section& section, const std::vector<std::string>& names,
                      const Named& named) = 0;
};

// Every key of the file. `config` must outlive the calls of ConfigKey::put and ConfigKey::get.
void describe(Keys& keys, Config& config);

}  // namespace hapax::config
