#include "wire/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value_stack.hpp>

#include "base/format.h"
#include "wire/json_events.h"

namespace hapax::wire {

namespace json = boost::json;

namespace {

// The double nearest to a number as it was written. Boost.JSON multiplies by a power of ten and may
// end up at the neighbour, which is another whole number. REQUIRES: the whole number, as on_double
// is given it when the text is parsed in one piece.
double nearest_double(json::string_view number, double computed) {
  double nearest = 0;
  const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), nearest);
  // What is out of range is infinite either way.
  return failed == std::errc{} && end == number.data() + number.size() ? nearest : computed;
}

// Builds the value, and counts the members that the text names. Of two members of one name the
// value has the last only, so the two numbers differ.
class Builder : public JsonEvents {
 public:
  explicit Builder(std::size_t members_max) : members_max_(members_max) {}

  void begin(const json::storage_ptr& storage) {
    stack_.reset(storage);
    named_ = 0;
  }
  [[nodiscard]] json::value take() { return stack_.release(); }
  [[nodiscard]] std::size_t named() const { return named_; }

  bool on_object_end(std::size_t count, ErrorCode& error) {
    if (count > members_max_) return stop(json::error::object_too_large, error);
    named_ += count;
    stack_.push_object(count);
    return true;
  }
  bool on_array_end(std::size_t count, ErrorCode&) {
    stack_.push_array(count);
    return true;
  }
  bool on_key_part(Text part, std::size_t, ErrorCode&) {
    stack_.push_chars(part);
    return true;
  }
  bool on_key(Text part, std::size_t, ErrorCode&) {
    stack_.push_key(part);
    return true;
  }
  bool on_string_part(Text part, std::size_t, ErrorCode&) {
    stack_.push_chars(part);
    return true;
  }
  bool on_string(Text part, std::size_t, ErrorCode&) {
    stack_.push_string(part);
    return true;
  }
  bool on_int64(std::int64_t value, Text, ErrorCode&) {
    stack_.push_int64(value);
    return true;
  }
  bool on_uint64(std::uint64_t value, Text, ErrorCode&) {
    stack_.push_uint64(value);
    return true;
  }
  bool on_double(double value, Text number, ErrorCode&) {
    stack_.push_double(nearest_double(number, value));
    return true;
  }
  bool on_bool(bool value, ErrorCode&) {
    stack_.push_bool(value);
    return true;
  }
  bool on_null(ErrorCode&) {
    stack_.push_null();
    return true;
  }

 private:
  const std::size_t members_max_;
  json::value_stack stack_;
  std::size_t named_ = 0;
};

// Stops behind the first name that its object has already. Of a text that was read as JSON.
class TwiceFinder : public JsonEvents {
 public:
  bool on_object_begin(ErrorCode&) {
    open_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, ErrorCode&) {
    open_.pop_back();
    return true;
  }
  bool on_key_part(Text part, std::size_t, ErrorCode&) {
    name_.append(part.data(), part.size());
    return true;
  }
  bool on_key(Text part, std::size_t, ErrorCode& error) {
    name_.append(part.data(), part.size());
    if (!open_.back().insert(name_).second) return stop(json::error::exception, error);
    name_.clear();
    return true;
  }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::vector<std::set<std::string>> open_;  // the names of the objects around what is read
  std::string name_;
};

std::size_t members_in(const json::value& value) {
  std::size_t members = 0;
  if (const auto* object = value.if_object()) {
    members = object->size();
    for (const auto& member : *object) {
      if (member.value().is_structured()) members += members_in(member.value());
    }
  } else if (const auto* array = value.if_array()) {
    for (const json::value& one : *array) {
      if (one.is_structured()) members += members_in(one);
    }
  }
  return members;
}

std::string place_in(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t begin = before.rfind('\n') + 1;
  return base::format("line {}, column {}", line, before.size() - begin + 1);
}

json::parse_options options_of(const JsonRules& rules) {
  json::parse_options options;
  options.max_depth = rules.depth_max;
  return options;
}

// Of a text that has such a member: it is read again, to tell where.
Error twice_in(std::string_view text, const JsonRules& rules) {
  json::basic_parser<TwiceFinder> parser(options_of(rules));
  json::error_code error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  const std::string name = rules.secret ? "a member" : parser.handler().name() + ":";
  return Error{Errc::kInvalidArgument,
               name + " stands twice in one object (" + place_in(text, read) + ")"};
}

}  // namespace

struct JsonReader::Parser : json::basic_parser<Builder> {
  explicit Parser(const JsonRules& rules)
      : json::basic_parser<Builder>(options_of(rules), rules.members_max) {}
};

JsonReader::JsonReader(const JsonRules& rules)
    : rules_(rules), parser_(std::make_unique<Parser>(rules)) {}
JsonReader::~JsonReader() = default;

Result<json::value> JsonReader::read(std::string_view text, const json::storage_ptr& storage) {
  parser_->reset();
  parser_->handler().begin(storage);
  json::error_code error;
  const std::size_t read = parser_->write_some(false, text.data(), text.size(), error);
  if (!error && read < text.size()) error = json::error::extra_data;
  if (error) {
    return Error{Errc::kInvalidArgument, std::string(rules_.subject) + " is not JSON (" +
                                             place_in(text, read) + "): " + error.message()};
  }
  json::value value = parser_->handler().take();
  if (members_in(value) != parser_->handler().named()) return twice_in(text, rules_);
  return value;
}

}  // namespace hapax::wire
