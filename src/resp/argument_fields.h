// Lists of fields read from the arguments of a command: the required ones in their order, then
// names (in any case) with values.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <hapax/ops.h>
#include <hapax/result.h>

#include "wire/nearest.h"
#include "wire/op_fields.h"
#include "wire/text_value.h"
#include "wire/words.h"

namespace hapax::resp {

inline Error bad_argument(std::string_view name, const std::string& why) {
  return Error{Errc::kInvalidArgument, std::string(name) + ": " + why};
}

class ArgumentFields {
 public:
  ArgumentFields(std::span<const std::string_view> arguments,
                 std::deque<std::vector<Header>>& headers)
      : arguments_(arguments), headers_(headers) {}

  template <class Value>
  void required(std::string_view name, Value&& value, std::string_view help) {
    if (error_) return;
    if (next_ >= arguments_.size()) {
      error_ = bad_argument(name, "is missing (" + std::string(help) + ")");
      return;
    }
    read(name, next_++, value);
  }

  template <class Value>
  void optional(std::string_view name, Value&& value, std::string_view /*help*/) {
    known_.push_back(name);
    if (error_) return;
    split_options();
    bool given = false;
    for (Option& option : options_) {
      if (!wire::same_word(option.name, name)) continue;
      option.used = true;
      if (std::exchange(given, true)) return refuse(name, "is given twice");
      read(name, option.value, value);
    }
  }

  void refuse(std::string_view name, const std::string& why) {
    if (!error_) error_ = bad_argument(name, why);
  }

  Status finish() {
    split_options();
    if (error_) return *error_;
    for (const Option& option : options_) {
      if (option.used) continue;
      return bad_argument(option.name, "is not an option here" +
                                           wire::suggestion(wire::lower(option.name), known_));
    }
    return Ok{};
  }

 private:
  // A name and where its value begins.
  struct Option {
    std::string_view name;
    std::size_t value = 0;
    bool used = false;
  };

  // Behind the required fields there are names with values; only HEADERS takes more than one.
  void split_options() {
    if (split_ || error_) return;
    split_ = true;
    for (std::size_t i = next_; i < arguments_.size();) {
      const std::string_view name = arguments_[i];
      if (i + 1 >= arguments_.size()) {
        error_ = bad_argument(name, "has no value");
        return;
      }
      options_.push_back({name, i + 1});
      std::size_t pairs = 0;
      if (wire::same_word(name, "headers") && !wire::from_text(arguments_[i + 1], pairs)) {
        i += std::min(2 * pairs, arguments_.size());
      }
      i += 2;
    }
  }

  template <class Value>
  void read(std::string_view name, std::size_t at, Value&& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<Value>, std::span<const Header>>) {
      read_headers(name, at, value);
    } else if (const auto expected = wire::from_text(arguments_[at], value)) {
      error_ = bad_argument(
          name, "expected " + *expected + ", got '" + std::string(arguments_[at]) + "'");
    }
  }

  void read_headers(std::string_view name, std::size_t at, std::span<const Header>& value) {
    std::size_t count = 0;
    if (wire::from_text(arguments_[at], count) || count >= arguments_.size() ||
        at + 2 * count >= arguments_.size()) {
      error_ = bad_argument(name, "expected their number, then as many names and values");
      return;
    }
    std::vector<Header>& list = headers_.emplace_back();
    for (std::size_t i = 0; i < count; ++i) {
      list.push_back({arguments_[at + 1 + 2 * i], arguments_[at + 2 + 2 * i]});
    }
    value = list;
  }

  const std::span<const std::string_view> arguments_;
  std::deque<std::vector<Header>>& headers_;
  std::size_t next_ = 0;
  bool split_ = false;
  std::vector<Option> options_;
  std::vector<std::string_view> known_;
  std::optional<Error> error_;
};

// "stream payload [ID value] …". Listens only.
class Usage {
 public:
  template <class Value>
  void required(std::string_view name, Value&&, std::string_view) {
    text += (text.empty() ? "" : " ") + std::string(name);
  }
  template <class Value>
  void optional(std::string_view name, Value&& value, std::string_view) {
    using Plain = std::remove_cvref_t<Value>;
    const bool headers = std::is_same_v<Plain, std::span<const Header>>;
    static_cast<void>(value);
    text += " [" + wire::upper(name) + (headers ? " count name value …]" : " value]");
  }
  void refuse(std::string_view, const std::string&) {}

  std::string text;
};

}  // namespace hapax::resp
