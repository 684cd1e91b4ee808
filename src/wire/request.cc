#include "wire/request.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory_resource>

#include <boost/json.hpp>

#include "base/utf8.h"
#include "digest/base64.h"
#include "wire/commit_fields.h"
#include "wire/event_fields.h"
#include "wire/json_reader.h"
#include "wire/json_source.h"
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
    // A larger double may stand for its neighbour, which is another whole number.
    const auto* real = value_.if_double();
    if (value_.is_number() && (real == nullptr || std::abs(*real) < 0x1p53)) {
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
    // A number is no text here, as in every other field.
    const bool forever = value_.is_string() && view(value_.get_string()) == kForever;
    if (forever) return from_text(kForever, window);
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
  Expected into(Bytes bytes) const { return into(bytes.view); }
  Expected into(KeyBytes bytes) const { return into(bytes.view); }
  Expected into(OptionalKeyBytes bytes) const { return into(bytes.view); }
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
    return into(value.emplace(kAny<Value>));
  }

 private:
  static Expected headers_shape() {
    return "an object of strings, or an array of [name, value] pairs";
  }

  const json::value& value_;
  Request::Memory& memory_;
};

// --- one JSON object into one operation

// A value, and where it stands in what was sent. In a list that is found when it is asked for: most
// operations keep nothing as it was sent.
class Sent {
 public:
  Sent(const json::value& value, std::string_view text) : value_(&value), text_(text) {}
  Sent(const json::value& value, JsonItems& list, std::size_t index)
      : value_(&value), list_(&list), index_(index) {}

  [[nodiscard]] const json::value& value() const { return *value_; }
  [[nodiscard]] const json::object* if_object() const { return value_->if_object(); }
  // Begins with the value.
  [[nodiscard]] std::string_view text() const {
    return list_ == nullptr ? text_ : list_->from(index_);
  }
  // What begins with the value of that member; it is there. No name stands twice in an object, so
  // its members are those of the text, in the same order.
  [[nodiscard]] std::string_view text_of(json::string_view name) const {
    const json::object& object = value_->get_object();
    return JsonItems(text()).from(static_cast<std::size_t>(object.find(name) - object.begin()));
  }

 private:
  const json::value* value_;
  std::string_view text_;
  JsonItems* list_ = nullptr;
  std::size_t index_ = 0;
};

class ObjectFields {
 public:
  // It is an object.
  ObjectFields(const Sent& sent, std::span<const TextField> given, std::string where,
               Request::Memory& memory)
      : sent_(sent),
        object_(sent.value().get_object()),
        given_(given),
        where_(std::move(where)),
        memory_(memory) {
    known_.reserve(kFieldsUsual);
  }

  template <class Value>
  void required(std::string_view name, Value&& value, std::string_view help) {
    if (!read(name, value)) missing_.push_back({name, help});
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
    if (!missing_.empty()) return all_missing();
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
  struct Missing {
    std::string_view name;
    std::string_view help;
  };

  // All of them, so that nobody has to find out one by one.
  [[nodiscard]] Error all_missing() const {
    std::string names;
    std::string helps;
    for (const auto& [name, help] : missing_) {
      names += (names.empty() ? "" : ", ") + place(name);
      helps += (helps.empty() ? "" : "; ") + std::string(help);
    }
    return bad(names, (missing_.size() == 1 ? "is missing (" : "are missing (") + helps + ")");
  }
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
      if (read_base64(name, member, value.view)) return true;
    }
    if (member == nullptr) return false;
    // Not "none": a variable that was never filled in must not turn off what the field is for.
    if (member->is_null()) {
      refuse(name, "is null; leave the field out instead");
      return true;
    }
    if constexpr (std::is_same_v<std::remove_cvref_t<Value>, Bytes>) {
      if (!member->is_string()) {
        // Byte for byte: numbers as they are written are more than any type of ours holds.
        value.view = memory_.keep(json_value_at(sent_.text_of({name.data(), name.size()})));
        return true;
      }
    }
    told(name, FieldValue(*member, memory_).into(value), std::string(kind_of(*member)));
    return true;
  }

  template <class Value>
  static Expected from_text_field(std::string_view text, Value&& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<Value>, std::span<const Header>>) {
      return "headers in the body";
    } else if constexpr (std::is_same_v<std::remove_cvref_t<Value>, std::string_view>) {
      // What is told as text and is none could never be named again.
      if (!base::is_utf8(text)) return "UTF-8";
      return from_text(text, value);
    } else {
      return from_text(text, value);
    }
  }

  template <class View>
  bool read_base64(std::string_view name, const json::value* plain, View& bytes) {
    const std::string encoded = std::string(name) + std::string(kBase64);
    const json::value* member = object_.if_contains(encoded);
    if (member == nullptr) return false;
    extra_names_.push_back(encoded);
    known_.push_back(extra_names_.back());
    if (plain != nullptr) {
      refuse(name, std::string(name) + " and " + encoded + " exclude each other");
      return true;
    }
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

  static constexpr std::size_t kFieldsUsual = 16;

  const Sent& sent_;
  const json::object& object_;
  const std::span<const TextField> given_;
  const std::string where_;
  Request::Memory& memory_;
  std::vector<std::string_view> known_;
  std::deque<std::string> extra_names_;
  std::vector<Missing> missing_;
  std::optional<Error> error_;
};

// Listens to the list of fields, for their names only.
class FieldNames {
 public:
  template <class Value>
  void required(std::string_view name, Value&& /*value*/, std::string_view /*help*/) {
    all.push_back(name);
  }
  template <class Value>
  void optional(std::string_view name, Value&& /*value*/, std::string_view /*help*/) {
    all.push_back(name);
  }
  void refuse(std::string_view, const std::string&) {}

  std::vector<std::string_view> all;
};

// --- documents

Result<Sent> parse(JsonReader& reader, std::string_view body, Request& request) {
  HAPAX_TRY(json::value value, reader.read(body, request.memory().storage()));
  return Sent(request.memory().documents.emplace_back(std::move(value)), body);
}

Result<Sent> parse(std::string_view body, Request& request) {
  JsonReader reader(kRequestRules);
  return parse(reader, body, request);
}

// What an operation is read with, beside its object.
struct Around {
  std::span<const TextField> given;
  const Usual& usual;
};

Status add_op(Request& request, std::string_view name, const Sent& sent, const Around& around,
              const std::string& where, std::string_view extra = {}) {
  if (sent.if_object() == nullptr) {
    return bad(where, "expected an object, got " + std::string(kind_of(sent.value())));
  }
  Status added = Ok{};
  const auto read = [&]<class AnyOp>(const Named<AnyOp>&) {
    AnyOp op{};
    around.usual.put(op);
    ObjectFields reader(sent, around.given, where, request.memory());
    fields(reader, op);
    around.usual.finish(op);
    added = reader.finish(extra);
    if (!added) return;
    if constexpr (std::is_same_v<AnyOp, PostedEvent>) {
      request.ops.emplace_back(record_of(op, request));
    } else {
      request.ops.emplace_back(op);
    }
  };
  if (!with_body(name, read)) {
    return bad(where, "there is no operation '" + std::string(name) + "'");
  }
  return added;
}

std::vector<std::string_view> op_names() {
  std::vector<std::string_view> names;
  std::apply([&](const auto&... named) { (names.push_back(named.name), ...); }, kOps);
  return names;
}

Status add_named_op(Request& request, const Sent& sent, const std::string& where,
                    const Usual& usual) {
  const auto* object = sent.if_object();
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
  return add_op(request, op, sent, {{}, usual}, where, "op");
}

Status add_list(Request& request, std::string_view op, const Sent& sent, const Around& around,
                std::string_view where) {
  const json::array& list = sent.value().get_array();
  JsonItems items(sent.text());
  request.ops.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Sent one(list[i], items, i);
    HAPAX_CHECK(add_op(request, op, one, around, std::string(where) + std::to_string(i)));
  }
  return Ok{};
}

}  // namespace

std::vector<std::string_view> field_names(std::string_view op) {
  FieldNames names;
  with_body(op, [&]<class AnyOp>(const Named<AnyOp>&) {
    AnyOp one{};
    fields(names, one);
  });
  return std::move(names.all);
}

Result<SharedRequest> read_op(std::string_view op, std::string_view body,
                              std::span<const TextField> given, const Usual& usual) {
  auto request = std::make_shared<Request>();
  HAPAX_TRY(const Sent sent, parse(body.empty() ? "{}" : body, *request));
  HAPAX_CHECK(add_op(*request, op, sent, {given, usual}, ""));
  return request;
}

Result<SharedRequest> read_commit(std::string_view body, const Usual& usual) {
  auto request = std::make_shared<Request>();
  HAPAX_TRY(const Sent sent, parse(body, *request));
  const auto* object = sent.if_object();
  if (object == nullptr) return bad("", "expected an object with \"ops\"");
  CommitFields commit{*request, {}, {}};
  ObjectFields reader(sent, {}, "", request->memory());
  fields(reader, commit);
  HAPAX_CHECK(reader.finish("ops"));
  const json::value* ops = object->if_contains("ops");
  if (ops == nullptr || !ops->is_array()) return bad("ops", "expected an array of operations");
  JsonItems items(sent.text_of("ops"));
  for (std::size_t i = 0; i < ops->get_array().size(); ++i) {
    const Sent one(ops->get_array()[i], items, i);
    HAPAX_CHECK(add_named_op(*request, one, "ops/" + std::to_string(i), usual));
  }
  return request;
}

Result<SharedRequest> read_ops(std::string_view op, std::string_view list, std::string_view body,
                               std::span<const TextField> given, const Usual& usual) {
  auto request = std::make_shared<Request>();
  request->mode = Mode::kEach;
  HAPAX_TRY(const Sent sent, parse(body, *request));
  if (sent.value().is_array()) {
    HAPAX_CHECK(add_list(*request, op, sent, {given, usual}, ""));
    return request;
  }
  const json::string_view member(list.data(), list.size());
  const auto* object = sent.if_object();
  const json::value* inner = object == nullptr ? nullptr : object->if_contains(member);
  if (inner == nullptr) {
    request->alone = true;
    // What was refused is decided anew when it is repeated under its Idempotency-Key.
    request->mode = Mode::kAtomic;
    HAPAX_CHECK(add_op(*request, op, sent, {given, usual}, ""));
    return request;
  }
  CommitFields commit{*request, {}, {}};
  ObjectFields reader(sent, {}, "", request->memory());
  fields(reader, commit);
  HAPAX_CHECK(reader.finish(list));
  if (!inner->is_array()) return bad(list, "expected an array");
  const Sent records(*inner, sent.text_of(member));
  HAPAX_CHECK(add_list(*request, op, records, {given, usual}, std::string(list) + "/"));
  return request;
}

Result<SharedRequest> read_op_lines(std::string_view op, std::string_view body,
                                    std::span<const TextField> given, const Usual& usual) {
  auto request = std::make_shared<Request>();
  request->mode = Mode::kEach;
  JsonReader reader(kRequestRules);
  for (std::size_t number = 1; !body.empty(); ++number) {
    const std::size_t end = std::min(body.find('\n'), body.size());
    const std::string_view line = body.substr(0, end);
    body.remove_prefix(std::min(end + 1, body.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = "line " + std::to_string(number);
    auto sent = parse(reader, line, *request);
    if (!sent) return bad(where, sent.error().detail);
    HAPAX_CHECK(add_op(*request, op, *sent, {given, usual}, where));
  }
  return request;
}

}  // namespace hapax::wire
