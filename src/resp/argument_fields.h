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

#include "base/words.h"
#include "wire/commit_fields.h"
#include "wire/nearest.h"
#include "wire/op_fields.h"
#include "wire/read_fields.h"
#include "wire/text_value.h"

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
    count_options();
    if (error_ || options_ == used_) return;
    bool given = false;
    each_option([&](std::string_view option, std::size_t at) {
      if (error_ || !base::same_word(option, name)) return;
      ++used_;
      if (std::exchange(given, true)) return refuse(name, "is given twice");
      read(name, at, value);
    });
  }

  void refuse(std::string_view name, const std::string& why) {
    if (!error_) error_ = bad_argument(name, why);
  }

  // Every list of fields asks for each name once: an option that nobody asked for is unknown.
  [[nodiscard]] bool has_unknown() {
    count_options();
    return !error_ && used_ != options_;
  }
  [[nodiscard]] Status unknown(std::span<const std::string_view> known) const {
    std::string_view first;
    each_option([&](std::string_view option, std::size_t) {
      const auto same = [&](std::string_view one) { return base::same_word(one, option); };
      if (first.empty() && std::none_of(known.begin(), known.end(), same)) first = option;
    });
    return bad_argument(first,
                        "is not an option here" + wire::suggestion(base::lower(first), known));
  }
  [[nodiscard]] Status finish() const { return error_ ? Status(*error_) : Status(Ok{}); }

 private:
  // Behind the required fields there are names with values; only HEADERS takes more than one.
  // Calls act(name, where its value begins), also for a last one that has no value.
  template <class Act>
  void each_option(const Act& act) const {
    for (std::size_t i = next_; i < arguments_.size(); i += 2) {
      act(arguments_[i], i + 1);
      std::size_t pairs = 0;
      const bool valued = i + 1 < arguments_.size();
      if (valued && base::same_word(arguments_[i], "headers") &&
          !wire::from_text(arguments_[i + 1], pairs)) {
        i += std::min(2 * pairs, arguments_.size());
      }
    }
  }

  void count_options() {
    if (error_ || std::exchange(counted_, true)) return;
    each_option([&](std::string_view option, std::size_t at) {
      ++options_;
      if (at >= arguments_.size()) error_ = bad_argument(option, "has no value");
    });
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
  bool counted_ = false;
  std::size_t options_ = 0;
  std::size_t used_ = 0;
  std::optional<Error> error_;
};

// The names of the options. Listens only.
class OptionNames {
 public:
  template <class Value>
  void required(std::string_view, Value&&, std::string_view) {}
  template <class Value>
  void optional(std::string_view name, Value&&, std::string_view) {
    names.push_back(name);
  }
  void refuse(std::string_view, const std::string&) {}

  std::vector<std::string_view> names;
};

// Fills what has a list of fields. The names of all of them matter only to a mistake.
template <class Subject>
Status read_fields(std::span<const std::string_view> arguments,
                   std::deque<std::vector<Header>>& headers, Subject& subject) {
  ArgumentFields reader(arguments, headers);
  wire::fields(reader, subject);
  if (!reader.has_unknown()) return reader.finish();
  OptionNames known;
  wire::fields(known, subject);
  return reader.unknown(known.names);
}

// "stream payload [ID value] …". Listens only.
class Usage {
 public:
  template <class Value>
  void required(std::string_view name, Value&&, std::string_view) {
    ++required_fields;
    text += (text.empty() ? "" : " ") + std::string(name);
  }
  template <class Value>
  void optional(std::string_view name, Value&& value, std::string_view) {
    using Plain = std::remove_cvref_t<Value>;
    const bool headers = std::is_same_v<Plain, std::span<const Header>>;
    static_cast<void>(value);
    text += (text.empty() ? "[" : " [") + base::upper(name) +
            (headers ? " count name value …]" : " value]");
  }
  void refuse(std::string_view, const std::string&) {}

  std::string text;
  int required_fields = 0;
};

template <class Subject>
const Usage& usage_for() {
  static const Usage kUsage = [] {
    Usage usage;
    if constexpr (std::is_default_constructible_v<Subject>) {
      Subject subject{};
      wire::fields(usage, subject);
    } else {
      wire::Request request;
      Subject subject{request};
      wire::fields(usage, subject);
    }
    return usage;
  }();
  return kUsage;
}

template <class Subject>
std::string_view usage_of() {
  return usage_for<Subject>().text;
}
template <class Subject>
int required_of() {
  return usage_for<Subject>().required_fields;
}

}  // namespace hapax::resp
