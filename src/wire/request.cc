#include "wire/request.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory_resource>

#include <boost/json.hpp>

#include "digest/base64.h"
#include "wire/commit_fields.h"
#include "wire/nearest.h"
#include "wire/op_fields.h"
#include "wire/text_value.h"

namespace hapax::wire {

namespace json = boost::json;

class Request::Memory {
 public:
  std::string_view keep(std::string_view bytes) {
    if (bytes.empty()) return {};
    auto* copy = static_cast<char*>(resource_.allocate(bytes.size(), 1));
    std::memcpy(copy, bytes.data(), bytes.size());
    return {copy, bytes.size()};
  }
  std::vector<Header>& make_headers() { return headers_.emplace_back(); }
  json::storage_ptr storage() { return &json_; }
  std::deque<json::value> documents;

 private:
  std::pmr::monotonic_buffer_resource resource_;
  json::monotonic_resource json_;
  std::deque<std::vector<Header>> headers_;
};

Request::Request() : memory_(std::make_unique<Memory>()) {}
Request::~Request() = default;
std::string_view Request::keep(std::string_view bytes) { return memory_->keep(bytes); }

namespace {

constexpr std::size_t kDepthMax = 64;
constexpr std::string_view kBase64 = "_base64";

Error bad(std::string_view where, const std::string& what) {
  return Error{Errc::kInvalidArgument, where.empty() ? what : std::string(where) + ": " + what};
}

std::string_view kind_of(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "an array";
    case json::kind::object:
      return "an object";
    default:
      return "a number";
  }
}

std::string_view view(const json::string& text) { return {text.data(), text.size()}; }
std::string_view view(json::string_view text) { return {text.data(), text.size()}; }

// --- one JSON value into one field

class FieldValue {
 public:
  FieldValue(const json::value& value, Request::Memory& memory) : value_(value), memory_(memory) {}

  Expected into(std::string_view& text) const {
    if (!value_.is_string()) return "a string";
    text = view(value_.get_string());
    return std::nullopt;
  }
  Expected into(bool& flag) const {
    if (!value_.is_bool()) return "true or false";
    flag = value_.get_bool();
    return std::nullopt;
  }
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) Expected into(Integer& number)
  const {
    if (value_.is_number()) {
      json::error_code error;
      number = value_.to_number<Integer>(error);
      if (!error) return std::nullopt;
    }
    Integer ignored{};
    return from_text("", ignored);
  }
  template <class Tag>
  Expected into(Number<Tag>& number) const {
    return into(number.value);
  }
  Expected into(Duration& duration) const {
    std::int64_t ms = 0;
    Expected expected = into(ms);
    duration = Duration{ms};
    return expected;
  }
  Expected into(Time& time) const {
    std::int64_t ms = 0;
    Expected expected = into(ms);
    time = time_from_ms(ms);
    return expected;
  }
  Expected into(Window& window) const {
    if (value_.is_string()) return from_text(view(value_.get_string()), window);
    std::uint32_t seconds = 0;
    if (into(seconds)) return from_text("", window);
    window = Window{std::chrono::seconds{seconds}};
    return std::nullopt;
  }
  template <class Enum>
  requires std::is_enum_v<Enum> Expected into(Enum& value)
  const {
    return from_text(value_.is_string() ? view(value_.get_string()) : std::string_view(), value);
  }
  Expected into(ReceiptText receipt) const {
    return from_text(value_.is_string() ? view(value_.get_string()) : std::string_view(), receipt);
  }
  // What is not text is stored as its JSON text.
  Expected into(Bytes bytes) const {
    if (value_.is_string()) return into(bytes.view);
    bytes.view = memory_.keep(json::serialize(value_));
    return std::nullopt;
  }
  Expected into(KeyBytes bytes) const { return into(bytes.view); }
  // {"name": "value"} or, where a name is repeated, [["name", "value"], …].
  Expected into(std::span<const Header>& headers) const {
    std::vector<Header>& list = memory_.make_headers();
    if (value_.is_object()) {
      for (const auto& member : value_.get_object()) {
        if (!member.value().is_string()) return headers_shape();
        list.push_back({view(member.key()), view(member.value().get_string())});
      }
    } else if (value_.is_array()) {
      for (const json::value& pair : value_.get_array()) {
        const auto* two = pair.if_array();
        if (two == nullptr || two->size() != 2) return headers_shape();
        if (!(*two)[0].is_string() || !(*two)[1].is_string()) return headers_shape();
        list.push_back({view((*two)[0].get_string()), view((*two)[1].get_string())});
      }
    } else {
      return headers_shape();
    }
    headers = list;
    return std::nullopt;
  }
  template <class Value>
  Expected into(std::optional<Value>& value) const {
    return into(value.emplace());
  }

 private:
  static Expected headers_shape() {
    return "an object of strings, or an array of [name, value] pairs";
  }

  const json::value& value_;
  Request::Memory& memory_;
};

// --- one JSON object into one operation

class ObjectFields {
 public:
  ObjectFields(const json::object& object, std::span<const TextField> given, std::string where,
               Request::Memory& memory)
      : object_(object), given_(given), where_(std::move(where)), memory_(memory) {}

  template <class Value>
  void required(std::string_view name, Value&& value, std::string_view help) {
    if (!read(name, value)) {
      refuse(name, "is missing (" + std::string(help) + ")");
    }
  }
  template <class Value>
  void optional(std::string_view name, Value&& value, std::string_view /*help*/) {
    static_cast<void>(read(name, value));
  }
  void refuse(std::string_view name, const std::string& why) {
    if (!error_) error_ = bad(place(name), why);
  }

  // Every member was asked for.
  Status finish(std::string_view extra) {
    if (error_) return *error_;
    for (const auto& member : object_) {
      const std::string_view name = view(member.key());
      const bool known =
          name == extra || std::find(known_.begin(), known_.end(), name) != known_.end();
      if (known) continue;
      return bad(place(name), "is not a field of this operation" + suggestion(name, known_));
    }
    return Ok{};
  }

 private:
  [[nodiscard]] std::string place(std::string_view name) const {
    return where_.empty() ? std::string(name) : where_ + "/" + std::string(name);
  }

  template <class Value>
  bool read(std::string_view name, Value&& value) {
    known_.push_back(name);
    if (error_) return true;
    const json::value* member = object_.if_contains(json::string_view(name.data(), name.size()));
    for (const TextField& text : given_) {
      if (text.name != name) continue;
      if (member != nullptr) refuse(name, "stands in the path already; leave it out of the body");
      told(name, from_text_field(text.value, value), "'" + std::string(text.value) + "'");
      return true;
    }
    if constexpr (kMayBeBase64<std::remove_cvref_t<Value>>) {
      if (read_base64(name, value.view)) return true;
    }
    if (member == nullptr || member->is_null()) return false;
    told(name, FieldValue(*member, memory_).into(value), std::string(kind_of(*member)));
    return true;
  }

  template <class Value>
  static Expected from_text_field(std::string_view text, Value&& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<Value>, std::span<const Header>>) {
      return "headers in the body";
    } else {
      return from_text(text, value);
    }
  }

  bool read_base64(std::string_view name, std::string_view& bytes) {
    const std::string encoded = std::string(name) + std::string(kBase64);
    const json::value* member = object_.if_contains(encoded);
    if (member == nullptr) return false;
    extra_names_.push_back(encoded);
    known_.push_back(extra_names_.back());
    const auto decoded =
        member->is_string() ? digest::decode_base64(view(member->get_string())) : std::nullopt;
    if (!decoded) {
      refuse(encoded, "expected bytes in base64");
    } else {
      bytes = memory_.keep(*decoded);
    }
    return true;
  }

  void told(std::string_view name, const Expected& expected, const std::string& got) {
    if (expected) refuse(name, "expected " + *expected + ", got " + got);
  }

  const json::object& object_;
  const std::span<const TextField> given_;
  const std::string where_;
  Request::Memory& memory_;
  std::vector<std::string_view> known_;
  std::deque<std::string> extra_names_;
  std::optional<Error> error_;
};

// --- documents

std::string place_in(std::string_view body, std::size_t offset) {
  const std::string_view before = body.substr(0, std::min(offset, body.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t begin = before.rfind('\n') + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(before.size() - begin + 1);
}

Result<const json::value*> parse(std::string_view body, Request::Memory& memory) {
  json::parse_options options;
  options.max_depth = kDepthMax;
  json::stream_parser parser(memory.storage(), options);
  json::error_code error;
  std::size_t read = parser.write_some(body.data(), body.size(), error);
  if (!error && read < body.size()) error = json::error::extra_data;
  if (!error) parser.finish(error);
  if (error) {
    return bad("", "the body is not JSON (" + place_in(body, read) + "): " + error.message());
  }
  return &memory.documents.emplace_back(parser.release());
}

Status add_op(Request& request, std::string_view name, const json::value& value,
              std::span<const TextField> given, const std::string& where,
              std::string_view extra = {}) {
  if (!value.is_object()) {
    return bad(where, "expected an object, got " + std::string(kind_of(value)));
  }
  Status added = Ok{};
  const auto read = [&]<class AnyOp>(const Named<AnyOp>&) {
    AnyOp op{};
    ObjectFields reader(value.get_object(), given, where, request.memory());
    fields(reader, op);
    added = reader.finish(extra);
    if (added) request.ops.emplace_back(op);
  };
  if (!with_op(name, read)) return bad(where, "there is no operation '" + std::string(name) + "'");
  return added;
}

std::vector<std::string_view> op_names() {
  std::vector<std::string_view> names;
  std::apply([&](const auto&... named) { (names.push_back(named.name), ...); }, kOps);
  return names;
}

Status add_named_op(Request& request, const json::value& value, const std::string& where) {
  const auto* object = value.if_object();
  const json::value* name = object == nullptr ? nullptr : object->if_contains("op");
  if (name == nullptr || !name->is_string()) {
    return bad(where, "expected an object with \"op\": the operation's name");
  }
  const std::string_view op = view(name->get_string());
  const std::vector<std::string_view> known = op_names();
  if (std::find(known.begin(), known.end(), op) == known.end()) {
    return bad(where + "/op",
               "'" + std::string(op) + "' is not an operation" + suggestion(op, known));
  }
  return add_op(request, op, value, {}, where, "op");
}

Status add_list(Request& request, std::string_view op, const json::array& list,
                std::span<const TextField> given, std::string_view where) {
  request.ops.reserve(list.size());
  std::size_t i = 0;
  for (const json::value& one : list) {
    HAPAX_CHECK(add_op(request, op, one, given, std::string(where) + std::to_string(i++)));
  }
  return Ok{};
}

}  // namespace

Result<SharedRequest> read_op(std::string_view op, std::string_view body,
                              std::span<const TextField> given) {
  auto request = std::make_shared<Request>();
  HAPAX_TRY(const json::value* value, parse(body.empty() ? "{}" : body, request->memory()));
  HAPAX_CHECK(add_op(*request, op, *value, given, ""));
  return request;
}

Result<SharedRequest> read_commit(std::string_view body) {
  auto request = std::make_shared<Request>();
  HAPAX_TRY(const json::value* value, parse(body, request->memory()));
  const auto* object = value->if_object();
  if (object == nullptr) return bad("", "expected an object with \"ops\"");
  CommitFields commit{*request, {}, {}};
  ObjectFields reader(*object, {}, "", request->memory());
  fields(reader, commit);
  HAPAX_CHECK(reader.finish("ops"));
  const json::value* ops = object->if_contains("ops");
  if (ops == nullptr || !ops->is_array()) return bad("ops", "expected an array of operations");
  std::size_t i = 0;
  for (const json::value& one : ops->get_array()) {
    HAPAX_CHECK(add_named_op(*request, one, "ops/" + std::to_string(i++)));
  }
  return request;
}

Result<SharedRequest> read_ops(std::string_view op, std::string_view list, std::string_view body,
                               std::span<const TextField> given) {
  auto request = std::make_shared<Request>();
  request->mode = Mode::kEach;
  HAPAX_TRY(const json::value* value, parse(body, request->memory()));
  if (const auto* array = value->if_array()) {
    HAPAX_CHECK(add_list(*request, op, *array, given, ""));
    return request;
  }
  const auto* object = value->if_object();
  const json::value* inner = object == nullptr
                                 ? nullptr
                                 : object->if_contains(json::string_view(list.data(), list.size()));
  if (inner == nullptr) {
    HAPAX_CHECK(add_op(*request, op, *value, given, ""));
    return request;
  }
  CommitFields commit{*request, {}, {}};
  ObjectFields reader(*object, {}, "", request->memory());
  fields(reader, commit);
  HAPAX_CHECK(reader.finish(list));
  if (!inner->is_array()) return bad(list, "expected an array");
  HAPAX_CHECK(add_list(*request, op, inner->get_array(), given, std::string(list) + "/"));
  return request;
}

Result<SharedRequest> read_op_lines(std::string_view op, std::string_view body,
                                    std::span<const TextField> given) {
  auto request = std::make_shared<Request>();
  request->mode = Mode::kEach;
  for (std::size_t number = 1; !body.empty(); ++number) {
    const std::size_t end = std::min(body.find('\n'), body.size());
    const std::string_view line = body.substr(0, end);
    body.remove_prefix(std::min(end + 1, body.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = "line " + std::to_string(number);
    auto value = parse(line, request->memory());
    if (!value) return bad(where, value.error().detail);
    HAPAX_CHECK(add_op(*request, op, **value, given, where));
  }
  return request;
}

}  // namespace hapax::wire
