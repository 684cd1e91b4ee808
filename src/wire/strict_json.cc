#include "wire/strict_json.h"

#include <algorithm>

#include <boost/json/basic_parser_impl.hpp>

#include "wire/json_events.h"

namespace hapax::wire {

namespace json = boost::json;

namespace {

class Builder : public JsonEvents {
 public:
  bool on_object_begin(json::error_code&) {
    open_.emplace_back().is = JsonValue::Object{};
    return true;
  }
  bool on_object_end(std::size_t, json::error_code&) { return close(); }
  bool on_array_begin(json::error_code&) {
    open_.emplace_back().is = JsonValue::Array{};
    return true;
  }
  bool on_array_end(std::size_t, json::error_code&) { return close(); }

  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_key(json::string_view part, std::size_t, json::error_code& error) {
    text_.append(part.data(), part.size());
    auto& members = std::get<JsonValue::Object>(open_.back().is);
    const auto same = [&](const JsonMember& member) { return member.name == text_; };
    if (std::any_of(members.begin(), members.end(), same)) {
      return stop("a member is there twice", error);
    }
    if (members.size() == kStrictJsonMembersMax) return stop("it has too many members", error);
    members.emplace_back().name = std::move(text_);
    text_.clear();
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_string(json::string_view part, std::size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    place(std::move(text_));
    text_.clear();
    return true;
  }
  bool on_int64(std::int64_t value, json::string_view, json::error_code&) { return place(value); }
  bool on_uint64(std::uint64_t value, json::string_view, json::error_code&) {
    return place(static_cast<double>(value));  // too large to be an int64
  }
  bool on_double(double value, json::string_view number, json::error_code&) {
    return place(nearest_double(number, value));
  }
  bool on_bool(bool value, json::error_code&) { return place(value); }
  bool on_null(json::error_code&) { return place(std::monostate{}); }

  [[nodiscard]] JsonValue take() { return std::move(root_); }
  [[nodiscard]] std::string_view why() const { return why_; }

 private:
  // Where the next value belongs.
  JsonValue& slot() {
    if (open_.empty()) return root_;
    if (auto* array = std::get_if<JsonValue::Array>(&open_.back().is)) return array->emplace_back();
    return std::get<JsonValue::Object>(open_.back().is).back().value;
  }
  template <class Kind>
  bool place(Kind value) {
    slot().is.template emplace<Kind>(std::move(value));
    return true;
  }
  bool close() {
    JsonValue done = std::move(open_.back());
    open_.pop_back();
    slot() = std::move(done);
    return true;
  }
  bool stop(std::string_view why, json::error_code& error) {
    why_ = why;
    error = json::error::exception;
    return false;
  }

  std::vector<JsonValue> open_;  // arrays and objects around what is read
  std::string text_;             // the key or string that is read
  JsonValue root_;
  std::string_view why_;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  const auto* members = get<Object>();
  if (members == nullptr) return nullptr;
  for (const JsonMember& member : *members) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

Result<JsonValue> read_strict_json(std::string_view text) {
  json::parse_options options;
  options.max_depth = kStrictJsonDepthMax;
  json::basic_parser<Builder> parser(options);
  json::error_code error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (error == json::error::exception) {
    return Error{Errc::kInvalidArgument, std::string(parser.handler().why())};
  }
  if (error) return Error{Errc::kInvalidArgument, "it is not JSON: " + error.message()};
  if (read != text.size()) {
    return Error{Errc::kInvalidArgument, "there is something behind the JSON value"};
  }
  return parser.handler().take();
}

}  // namespace hapax::wire
