// Ties a key of the table to the field that holds its value.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <string>
#include <utility>

#include "config/keys.h"
#include "wire/op_fields.h"

namespace hapax::config {

constexpr auto words_of(Algorithm) {
  using wire::Word;
  return std::array{Word{Algorithm::kHs256, "HS256"}, Word{Algorithm::kRs256, "RS256"},
                    Word{Algorithm::kEs256, "ES256"}, Word{Algorithm::kEdDsa, "EdDSA"}};
}
constexpr auto words_of(LogFormat) {
  using wire::Word;
  return std::array{Word{LogFormat::kText, "text"}, Word{LogFormat::kJson, "json"}};
}
constexpr auto words_of(LogLevel) {
  using wire::Word;
  return std::array{Word{LogLevel::kDebug, "debug"}, Word{LogLevel::kInfo, "info"},
                    Word{LogLevel::kWarning, "warning"}, Word{LogLevel::kError, "error"}};
}

namespace detail {

using wire::words_of;

template <class Enum>
constexpr auto word_list() {
  constexpr auto kAll = words_of(Enum{});
  std::array<std::string_view, kAll.size()> list{};
  for (std::size_t i = 0; i < kAll.size(); ++i) list[i] = kAll[i].word;
  return list;
}
template <class Enum>
inline constexpr auto kWords = word_list<Enum>();

template <class Enum>
constexpr bool words_are_in_order() {
  constexpr auto kAll = words_of(Enum{});
  for (std::size_t i = 0; i < kAll.size(); ++i) {
    if (kAll[i].value != static_cast<Enum>(i)) return false;
  }
  return true;
}

inline void assign(bool& to, const SettingValue& from) { to = std::get<bool>(from); }
inline void assign(std::string& to, const SettingValue& from) { to = std::get<std::string>(from); }
inline void assign(Duration& to, const SettingValue& from) {
  to = Duration{static_cast<std::int64_t>(std::get<std::uint64_t>(from))};
}
inline void assign(Window& to, const SettingValue& from) {
  const auto seconds = std::get<std::uint64_t>(from);
  to = seconds == kForever ? Window::forever()
                           : Window{std::chrono::seconds{static_cast<std::int64_t>(seconds)}};
}
template <class Value>
requires(std::unsigned_integral<Value> ||
         std::is_enum_v<Value>) void assign(Value& to, const SettingValue& from) {
  to = static_cast<Value>(std::get<std::uint64_t>(from));
}
template <class Value>
void assign(std::optional<Value>& to, const SettingValue& from) {
  assign(to.emplace(), from);
}

inline std::optional<SettingValue> setting_of(bool from) { return from; }
inline std::optional<SettingValue> setting_of(const std::string& from) { return from; }
inline std::optional<SettingValue> setting_of(Duration from) {
  return static_cast<std::uint64_t>(from.count());
}
inline std::optional<SettingValue> setting_of(Window from) {
  return from.is_forever() ? kForever : std::uint64_t{from.raw()};
}
template <class Value>
requires(std::unsigned_integral<Value> && !std::same_as<Value, bool>) ||
    std::is_enum_v<Value> std::optional<SettingValue> setting_of(Value from) {
  return static_cast<std::uint64_t>(from);
}
template <class Value>
std::optional<SettingValue> setting_of(const std::optional<Value>& from) {
  return from ? setting_of(*from) : std::nullopt;
}

}  // namespace detail

template <class Value>
[[nodiscard]] ConfigKey key_for(std::string_view name, Kind kind, Value& value,
                                std::string_view meaning, Bounds bounds = {}) {
  ConfigKey key{name, kind, meaning, bounds};
  key.put = [&value](const SettingValue& setting) { detail::assign(value, setting); };
  key.get = [&value] { return detail::setting_of(value); };
  return key;
}

template <class Enum>
[[nodiscard]] ConfigKey word_key(ConfigKey key) {
  static_assert(detail::words_are_in_order<Enum>());
  key.kind = Kind::kWord;
  key.words = detail::kWords<Enum>;
  return key;
}

}  // namespace hapax::config
