#include "wire/json_document.h"

#include <algorithm>
#include <set>
#include <string>
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

// Builds the value, and counts the members that the text names. Of two members of one name the
// value has the last only, so the two numbers differ.
class DocumentBuilder : public JsonEvents {
 public:
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();

  void begin(const json::storage_ptr& storage) {
    stack_.reset(storage);
    named_ = 0;
  }
  [[nodiscard]] json::value take() { return stack_.release(); }
  [[nodiscard]] std::size_t named() const { return named_; }

  bool on_object_end(std::size_t count, ErrorCode&) {
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
  json::value_stack stack_;
  std::size_t named_ = 0;
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

// Stops behind the first name that its object has already.
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
    if (!open_.back().insert(name_).second) {
      error = json::error::exception;
      return false;
    }
    name_.clear();
    return true;
  }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::vector<std::set<std::string>> open_;  // the names of the objects around what is read
  std::string name_;
};

std::string place_in(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t begin = before.rfind('\n') + 1;
  return base::format("line {}, column {}", line, before.size() - begin + 1);
}

json::parse_options parse_options() {
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  return options;
}

Error twice_in(std::string_view text) {
  json::basic_parser<TwiceFinder> parser(parse_options());
  json::error_code error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  return Error{Errc::kInvalidArgument, parser.handler().name() + ": stands twice in one object (" +
                                           place_in(text, read) + ")"};
}

}  // namespace

struct JsonReader::Parser : json::basic_parser<DocumentBuilder> {
  Parser() : json::basic_parser<DocumentBuilder>(parse_options()) {}
};

JsonReader::JsonReader() : parser_(std::make_unique<Parser>()) {}
JsonReader::~JsonReader() = default;

Result<json::value> JsonReader::read(std::string_view text, const json::storage_ptr& storage) {
  parser_->reset();
  parser_->handler().begin(storage);
  json::error_code error;
  const std::size_t read = parser_->write_some(false, text.data(), text.size(), error);
  if (!error && read < text.size()) error = json::error::extra_data;
  if (error) {
    return Error{Errc::kInvalidArgument,
                 "the body is not JSON (" + place_in(text, read) + "): " + error.message()};
  }
  json::value value = parser_->handler().take();
  if (members_in(value) != parser_->handler().named()) return twice_in(text);
  return value;
}

}  // namespace hapax::wire
