#include "config/values.h"

#include <array>
#include <limits>

#include <hapax/limits.h>

#include "base/format.h"
#include "base/span.h"
#include "base/tenant_frame.h"
#include "base/whole_number.h"
#include "delivery/endpoint_settings.h"
#include "net/address.h"
#include "wire/json_text.h"
#include "wire/nearest.h"

namespace hapax::config {

namespace {

struct Unit {
  std::string_view name;
  std::uint64_t value;
};

// The largest first, so that showing takes the first that divides.
constexpr std::array kSizes{Unit{"TiB", std::uint64_t{1} << 40},
                            Unit{"GiB", 1 << 30},
                            Unit{"MiB", 1 << 20},
                            Unit{"KiB", 1 << 10},
                            Unit{"TB", 1'000'000'000'000},
                            Unit{"GB", 1'000'000'000},
                            Unit{"MB", 1'000'000},
                            Unit{"kB", 1'000},
                            Unit{"B", 1}};
// For showing only; a week is shown as seven days.
constexpr std::array kSpans{Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000},
                            Unit{"s", 1'000}, Unit{"ms", 1}};

std::optional<std::uint64_t> times(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) return std::nullopt;
  return a * b;
}

std::optional<std::uint64_t> parse_whole(std::string_view text) {
  const auto number = base::take_number(text);
  return text.empty() ? number : std::nullopt;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const auto number = base::take_number(text);
  if (!number || text.empty()) return number;
  for (const Unit& unit : kSizes) {
    if (text == unit.name) return times(*number, unit.value);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_duration(const ConfigKey& key, std::string_view text) {
  if (const auto whole = has_unit(key) ? parse_whole(text) : std::nullopt) {
    return key.name.ends_with("_ms") ? whole : times(*whole, 1'000);
  }
  return base::parse_span(text);
}

std::optional<std::uint64_t> parse_window(const ConfigKey& key, std::string_view text) {
  if (text == "forever") return kForever;
  const auto ms = parse_duration(key, text);
  if (!ms || *ms % 1'000 != 0) return std::nullopt;
  return *ms / 1'000;
}

std::optional<std::uint64_t> parse_number(const ConfigKey& key, std::string_view text) {
  switch (key.kind) {
    case Kind::kSize:
      return parse_size(text);
    case Kind::kDuration:
      return parse_duration(key, text);
    case Kind::kWindow:
      return parse_window(key, text);
    default:
      return parse_whole(text);
  }
}

template <std::size_t Count>
std::string show_units(std::uint64_t number, const std::array<Unit, Count>& units) {
  for (const Unit& unit : units) {
    if (number != 0 && number % unit.value == 0) {
      return base::format("{}{}", number / unit.value, unit.name);
    }
  }
  return "0";
}

std::string show_number(const ConfigKey& key, std::uint64_t number) {
  switch (key.kind) {
    case Kind::kSize: {
      const std::string text = show_units(number, kSizes);
      return text.ends_with("iB") ? text : std::to_string(number);
    }
    case Kind::kDuration:
      return number == 0 ? "0s" : show_units(number, kSpans);
    case Kind::kWindow:
      return number == kForever ? "forever" : show_units(number * 1'000, kSpans);
    case Kind::kWord:
      return std::string(key.words[number]);
    default:
      return std::to_string(number);
  }
}

std::string range(const ConfigKey& key) {
  const Bounds any;
  const std::string least = show_number(key, key.bounds.least);
  if (key.bounds.most == any.most) {
    return key.bounds.least == 0 ? "" : " of at least " + least;
  }
  return " from " + least + " to " + show_number(key, key.bounds.most);
}

Error refuse(const ConfigKey& key, std::string_view text) {
  std::string what = "must be " + wanted(key) + ", not " + quote(text);
  if (key.kind == Kind::kWord) {
    if (const auto near = wire::nearest(text, key.words)) {
      what += "; did you mean '" + std::string(*near) + "'?";
    }
  }
  return {Errc::kInvalidArgument, what};
}

Result<SettingValue> parse_word(const ConfigKey& key, std::string_view text) {
  for (std::size_t i = 0; i < key.words.size(); ++i) {
    if (key.words[i] == text) return SettingValue{std::uint64_t{i}};
  }
  return refuse(key, text);
}

Result<SettingValue> parse_text(const ConfigKey& key, std::string_view text) {
  if (key.kind == Kind::kAddress && !text.empty()) {
    if (const auto address = net::parse_address(text); !address) {
      return Error{Errc::kInvalidArgument, "is wrong: " + address.error().detail};
    }
  }
  const bool name =
      !text.empty() && text.size() <= limits::kNameBytesMax && base::from_outside(text);
  if (key.kind == Kind::kName && !name) return refuse(key, text);
  if (key.kind == Kind::kSecret) HAPAX_CHECK(delivery::SecretText::parse(text));
  return SettingValue{std::string(text)};
}

}  // namespace

std::string quote(std::string_view text) {
  constexpr std::size_t kShownMax = 60;
  std::string shown;
  for (const char c : text.substr(0, kShownMax)) {
    shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  if (text.size() > kShownMax) shown += "...";
  return "'" + shown + "'";
}

bool has_unit(const ConfigKey& key) {
  return key.name.ends_with("_ms") || key.name.ends_with("_s");
}

std::string wanted(const ConfigKey& key) {
  switch (key.kind) {
    case Kind::kFlag:
      return "true or false";
    case Kind::kNumber:
      return "a whole number" + range(key);
    case Kind::kSize:
      return "a size" + range(key) + " such as 64MiB";
    case Kind::kDuration:
      return "a span of time" + range(key) + " such as 30s, 5m or 24h";
    case Kind::kWindow:
      return "whole seconds" + range(key) + " such as 24h, or forever";
    case Kind::kWord: {
      std::string words;
      for (const auto word : key.words) words += (words.empty() ? "" : ", ") + std::string(word);
      return "one of " + words;
    }
    case Kind::kName:
      return base::format("a name of 1 to {} bytes", limits::kNameBytesMax);
    case Kind::kAddress:
      return "an address such as 127.0.0.1:7171";
    case Kind::kFile:
      return "a path";
    case Kind::kSecret:
      return "text with secrets as ${env:NAME}, ${file:PATH} or ${secret:NAME}";
    case Kind::kText:
      break;
  }
  return "text";
}

std::string wanted_forms(const ConfigKey& key) {
  const std::string one = wanted(key);
  if (!key.put && key.put_list) return "a list, each " + one;
  if (!key.put && key.put_named) return "names, each with " + one;
  return key.put_list ? one + ", or a list of such" : one;
}

Result<SettingValue> parse(const ConfigKey& key, std::string_view text) {
  switch (key.kind) {
    case Kind::kFlag:
      if (text != "true" && text != "false") return refuse(key, text);
      return SettingValue{text == "true"};
    case Kind::kWord:
      return parse_word(key, text);
    case Kind::kText:
    case Kind::kSecret:
    case Kind::kName:
    case Kind::kAddress:
    case Kind::kFile:
      return parse_text(key, text);
    default:
      break;
  }
  const auto number = parse_number(key, text);
  if (!number) return refuse(key, text);
  const bool forever = key.kind == Kind::kWindow && *number == kForever;
  const bool inside = *number >= key.bounds.least && *number <= key.bounds.most;
  if (!inside && !forever) return refuse(key, text);
  return SettingValue{*number};
}

std::string show(const ConfigKey& key, const SettingValue& setting) {
  if (const bool* flag = std::get_if<bool>(&setting)) return *flag ? "true" : "false";
  if (const std::string* text = std::get_if<std::string>(&setting)) return *text;
  return show_number(key, std::get<std::uint64_t>(setting));
}

}  // namespace hapax::config
