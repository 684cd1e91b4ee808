#include "wire/json_schema.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <type_traits>
#include <vector>

#include "base/assert.h"
#include "wire/commit_fields.h"
#include "wire/json_text.h"
#include "wire/op_fields.h"
#include "wire/strict_json.h"

namespace hapax::wire {

namespace {

constexpr std::string_view kHeaders =
    R"([{"type":"object","additionalProperties":{"type":"string"}},)"
    R"({"type":"array","items":{"type":"array","items":{"type":"string"},)"
    R"("minItems":2,"maxItems":2}}])";

// --- fields of operations

template <class Value>
struct TypeOf {
  static JsonObject schema() {
    JsonObject out;
    if constexpr (std::is_same_v<Value, bool>) {
      out.add("type", "boolean");
    } else if constexpr (std::is_enum_v<Value>) {
      JsonArray words;
      for (const auto& one : words_of(Value{})) words.add(json_text(one.word));
      out.raw("enum", words.text());
    } else if constexpr (std::is_integral_v<Value>) {
      out.add("type", "integer").add("minimum", std::numeric_limits<Value>::min());
      if constexpr (sizeof(Value) < 8) out.add("maximum", std::numeric_limits<Value>::max());
    } else {
      static_assert(std::is_same_v<Value, std::string_view>, "a field of a type without a schema");
      out.add("type", "string");
    }
    return out;
  }
};
template <class Value>
struct TypeOf<std::optional<Value>> : TypeOf<Value> {};
template <class Tag>
struct TypeOf<Number<Tag>> : TypeOf<std::uint64_t> {};
template <>
struct TypeOf<Duration> : TypeOf<std::int64_t> {};
template <>
struct TypeOf<Time> : TypeOf<std::int64_t> {};
template <>
struct TypeOf<ReceiptText> : TypeOf<std::string_view> {};
template <>
struct TypeOf<KeyBytes> : TypeOf<std::string_view> {};
template <>
struct TypeOf<OptionalKeyBytes> {
  static JsonObject schema() { return TypeOf<std::string_view>::schema().add("minLength", 1); }
};
template <>
struct TypeOf<Window> {
  static JsonObject schema() {
    return JsonObject().raw("oneOf", R"([{"type":"integer","minimum":0},{"const":"forever"}])");
  }
};
template <>
struct TypeOf<Bytes> {
  static JsonObject schema() { return {}; }  // text, or any JSON value
};
template <>
struct TypeOf<std::span<const Header>> {
  static JsonObject schema() { return JsonObject().raw("oneOf", kHeaders); }
};

// Listens to the list of fields.
class SchemaFields {
 public:
  explicit SchemaFields(std::span<const std::string> elsewhere) : elsewhere_(elsewhere) {}

  template <class Value>
  void required(std::string_view name, Value&& /*value*/, std::string_view help) {
    using Type = std::remove_cvref_t<Value>;
    if (!add<Type>(name, help)) return;
    needed_ = true;
    if constexpr (kMayBeBase64<Type>) {
      JsonArray either;
      either.add(R"({"required":[)" + json_text(name) + "]}");
      either.add(R"({"required":[)" + json_text(std::string(name) + "_base64") + "]}");
      one_of_.add(R"({"oneOf":)" + either.text() + "}");
      has_one_of_ = true;
    } else {
      required_.add(json_text(name));
    }
  }
  template <class Value>
  void optional(std::string_view name, Value&& /*value*/, std::string_view help) {
    add<std::remove_cvref_t<Value>>(name, help);
  }
  void refuse(std::string_view, const std::string&) {}

  void add_raw(std::string_view name, std::string_view schema) {
    properties_.raw(name, schema);
    required_.add(json_text(name));
  }

  [[nodiscard]] std::string schema() const {
    JsonObject out;
    out.add("type", "object").raw("properties", properties_.text());
    out.raw("required", required_.text());
    if (has_one_of_) out.raw("allOf", one_of_.text());
    return out.raw("additionalProperties", "false").text();
  }
  [[nodiscard]] std::string parameters() const { return parameters_.text(); }
  [[nodiscard]] bool needed() const { return needed_; }

 private:
  template <class Type>
  bool add(std::string_view name, std::string_view help) {
    if (std::find(elsewhere_.begin(), elsewhere_.end(), name) != elsewhere_.end()) return false;
    JsonObject schema = TypeOf<Type>::schema();
    parameters_.add(JsonObject()
                        .add("name", name)
                        .add("in", "query")
                        .add("description", help)
                        .raw("schema", schema.text())
                        .text());
    properties_.raw(name, schema.add("description", help).text());
    if constexpr (kMayBeBase64<Type>) {
      const JsonObject encoded =
          JsonObject().add("type", "string").add("contentEncoding", "base64");
      properties_.raw(std::string(name) + "_base64", encoded.text());
    }
    return true;
  }

  const std::span<const std::string> elsewhere_;
  JsonObject properties_;
  JsonArray required_;
  JsonArray one_of_;
  bool has_one_of_ = false;
  bool needed_ = false;  // some field must be there
  JsonArray parameters_;
};

SchemaFields listen(std::string_view op, std::span<const std::string> elsewhere) {
  SchemaFields listener(elsewhere);
  const bool known = with_op(op, [&]<class AnyOp>(const Named<AnyOp>&) {
    AnyOp sample{};
    fields(listener, sample);
  });
  HAPAX_ASSERT(known, "a route names an operation that does not exist");
  return listener;
}

// --- samples

class Shape {
 public:
  void take(const JsonValue& value) {
    ++taken_;
    std::visit([&](const auto& one) { take_kind(one); }, value.is);
  }
  [[nodiscard]] std::string schema() const {
    JsonArray types;
    for (const std::string& type : types_) types.add(json_text(type));
    JsonObject out;
    out.raw("type", types_.size() == 1 ? json_text(*types_.begin()) : types.text());
    if (types_.contains("object")) describe_members(out);
    if (items_) out.raw("items", items_->schema());
    return out.text();
  }

 private:
  void take_kind(std::monostate) { types_.insert("null"); }
  void take_kind(bool) { types_.insert("boolean"); }
  void take_kind(std::int64_t) { types_.insert("integer"); }
  void take_kind(double) { types_.insert("number"); }
  void take_kind(const std::string&) { types_.insert("string"); }
  void take_kind(const JsonValue::Array& array) {
    types_.insert("array");
    for (const JsonValue& item : array) {
      if (!items_) items_ = std::make_unique<Shape>();
      items_->take(item);
    }
  }
  void take_kind(const JsonValue::Object& object) {
    types_.insert("object");
    for (const JsonMember& member : object) members_[member.name].take(member.value);
  }
  void describe_members(JsonObject& out) const {
    JsonObject properties;
    JsonArray required;
    for (const auto& [name, shape] : members_) {
      properties.raw(name, shape.schema());
      if (shape.taken_ == taken_) required.add(json_text(name));
    }
    out.raw("properties", properties.text()).raw("required", required.text());
    out.raw("additionalProperties", "false");
  }

  std::size_t taken_ = 0;
  std::set<std::string> types_;
  std::map<std::string, Shape> members_;
  std::unique_ptr<Shape> items_;
};

}  // namespace

std::string op_schema(std::string_view op, std::span<const std::string> elsewhere, OpName named) {
  SchemaFields listener = listen(op, elsewhere);
  if (named == OpName::kMember) {
    listener.add_raw("op", JsonObject().add("const", op).text());
  }
  return listener.schema();
}

bool needs_body(std::string_view op, std::span<const std::string> elsewhere) {
  return listen(op, elsewhere).needed();
}

std::string op_parameters(std::string_view op, std::span<const std::string> elsewhere) {
  return listen(op, elsewhere).parameters();
}

std::string commit_schema(std::string_view list, std::string_view item) {
  Request request;
  CommitFields commit{request, {}, {}};
  SchemaFields listener({});
  fields(listener, commit);
  listener.add_raw(list, JsonObject().add("type", "array").raw("items", item).text());
  return listener.schema();
}

std::string schema_of(std::span<const std::string> samples) {
  Shape shape;
  for (const std::string& sample : samples) {
    const auto value = read_strict_json(sample);
    HAPAX_ASSERT(value.ok(), "a sample is no JSON");
    shape.take(*value);
  }
  return shape.schema();
}

}  // namespace hapax::wire
