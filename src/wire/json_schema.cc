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
#include "wire/event_fields.h"
#include "wire/json_text.h"
#include "wire/op_fields.h"
#include "wire/strict_json.h"

namespace hapax::wire {

namespace {

// As digest::decode_base64() takes it: with its padding or without, and no bit is lost.
constexpr std::string_view kBase64Pattern =
    "^(?:[A-Za-z0-9+/]{4})*"
    "(?:[A-Za-z0-9+/][AQgw](?:==)?|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=?)?$";
// Numbers of either part begin at 1 and stay below 2^62.
constexpr std::string_view kReceiptPattern = "^[0-9]{1,19}-[0-9]{1,19}$";

std::string_view pattern_of(FirstByte first) {
  switch (first) {
    case FirstByte::kAny:
      return {};
    case FirstByte::kNoFrame:
      return R"(^[^\x01])";
    case FirstByte::kNew:
      return R"(^[^\x01$])";
    case FirstByte::kNewOrNone:
      return R"(^([^\x01$]|$))";
    case FirstByte::kKept:
      return R"(^([^\x01$]|\$audit$))";
  }
  return {};
}

// JSON Schema counts characters and the store counts bytes, of which a character has at least one.
void add_lengths(JsonObject& schema, const Allowed& allowed) {
  if (allowed.least.value_or(0) > 0) schema.add("minLength", 1);
  if (allowed.most) schema.add("maxLength", *allowed.most);
}

JsonObject text_schema(const Allowed& allowed) {
  JsonObject out;
  out.add("type", "string");
  add_lengths(out, allowed);
  if (const auto pattern = pattern_of(allowed.first); !pattern.empty()) out.add("pattern", pattern);
  return out;
}

template <class Integer>
JsonObject number_schema(const Allowed& allowed) {
  using Range = std::numeric_limits<Integer>;
  JsonObject out;
  out.add("type", "integer");
  allowed.least ? out.add("minimum", *allowed.least) : out.add("minimum", Range::min());
  allowed.most ? out.add("maximum", *allowed.most) : out.add("maximum", Range::max());
  return out;
}

JsonObject base64_schema(const Allowed& allowed) {
  JsonObject out;
  out.add("type", "string").add("contentEncoding", "base64").add("pattern", kBase64Pattern);
  if (allowed.least.value_or(0) > 0) out.add("minLength", 2);  // A byte is two digits.
  if (allowed.most) out.add("maxLength", (*allowed.most + 2) / 3 * 4);
  return out;
}

std::string headers_forms(const Allowed& allowed) {
  const std::string text = JsonObject().add("type", "string").text();
  JsonObject object;
  object.add("type", "object").raw("additionalProperties", text);
  JsonObject pair;
  pair.add("type", "array").raw("items", text).add("minItems", 2).add("maxItems", 2);
  JsonObject pairs;
  pairs.add("type", "array").raw("items", pair.text());
  if (allowed.most) object.add("maxProperties", *allowed.most);
  if (allowed.most) pairs.add("maxItems", *allowed.most);
  JsonArray forms;
  forms.add(object.text());
  forms.add(pairs.text());
  return forms.text();
}

std::string needs(std::initializer_list<std::string_view> names) {
  JsonArray list;
  for (const std::string_view name : names) list.add(json_text(name));
  return JsonObject().raw("required", list.text()).text();
}
std::string base64_name(std::string_view name) { return std::string(name) + "_base64"; }

// --- fields of operations

template <class Value>
struct TypeOf {
  static JsonObject schema(const Allowed& allowed) {
    if constexpr (std::is_same_v<Value, bool>) {
      return JsonObject().add("type", "boolean");
    } else if constexpr (std::is_enum_v<Value>) {
      JsonArray words;
      for (const auto& one : words_of(Value{})) words.add(json_text(one.word));
      return JsonObject().raw("enum", words.text());
    } else if constexpr (std::is_integral_v<Value>) {
      return number_schema<Value>(allowed);
    } else {
      static_assert(std::is_same_v<Value, std::string_view>, "a field of a type without a schema");
      return text_schema(allowed);
    }
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
struct TypeOf<ReceiptText> {
  static JsonObject schema(const Allowed& allowed) {
    return text_schema(allowed).add("pattern", kReceiptPattern);
  }
};
template <>
struct TypeOf<KeyBytes> : TypeOf<std::string_view> {};
template <>
struct TypeOf<OptionalKeyBytes> : TypeOf<std::string_view> {};
template <>
struct TypeOf<Window> {
  static JsonObject schema(const Allowed& allowed) {
    JsonArray forms;
    forms.add(number_schema<std::uint32_t>(allowed).text());
    forms.add(JsonObject().add("const", "forever").text());
    return JsonObject().raw("oneOf", forms.text());
  }
};
template <>
struct TypeOf<Bytes> {
  // Text, or any other JSON value than null.
  static JsonObject schema(const Allowed& allowed) {
    JsonObject out;
    out.raw("type", R"(["string","number","boolean","array","object"])");
    add_lengths(out, allowed);
    return out;
  }
};
template <>
struct TypeOf<std::span<const Header>> {
  static JsonObject schema(const Allowed& allowed) {
    return JsonObject().raw("oneOf", headers_forms(allowed));
  }
};

// Listens to the list of fields.
class SchemaFields {
 public:
  SchemaFields(std::span<const std::string> elsewhere, Callers callers)
      : elsewhere_(elsewhere), callers_(callers) {}

  template <class Value>
  void required(std::string_view name, Value&& /*value*/, const About& about) {
    using Type = std::remove_cvref_t<Value>;
    add<Type>(name, about, true);
  }
  template <class Value>
  void optional(std::string_view name, Value&& /*value*/, const About& about) {
    add<std::remove_cvref_t<Value>>(name, about, is_needed(about.allowed.need));
  }
  void refuse(std::string_view, const std::string&) {}

  void together(Names names) {
    for (const std::string_view name : names) {
      JsonArray others;
      for (const std::string_view other : names) {
        if (other != name) others.add(json_text(other));
      }
      dependent_.raw(name, others.text());
    }
    has_dependent_ = true;
  }
  void apart(Names names) { rule(JsonObject().raw("not", needs(names))); }
  void needs_key(std::string_view name, std::string_view other) {
    JsonArray forms;
    forms.add(JsonObject().raw("not", needs({name})).text());
    forms.add(needs({other}));
    forms.add(needs({base64_name(other)}));
    rule(JsonObject().raw("anyOf", forms.text()));
  }
  void alone_if_true(std::string_view name, Names others) {
    const std::string is_true = JsonObject().add("const", true).text();
    JsonArray any;
    for (const std::string_view other : others) any.add(needs({name, other}));
    JsonObject both;
    both.raw("properties", JsonObject().raw(name, is_true).text()).raw("anyOf", any.text());
    rule(JsonObject().raw("not", both.text()));
  }

  void add_raw(std::string_view name, std::string_view schema) {
    properties_.raw(name, schema);
    required_.add(json_text(name));
  }

  [[nodiscard]] std::string schema() const {
    JsonObject out;
    out.add("type", "object").raw("properties", properties_.text());
    out.raw("required", required_.text());
    if (has_dependent_) out.raw("dependentRequired", dependent_.text());
    if (has_rules_) out.raw("allOf", rules_.text());
    return out.raw("additionalProperties", "false").text();
  }
  // Of a field that is elsewhere.
  [[nodiscard]] std::string schema_of(std::string_view name) const {
    const auto found = places_.find(name);
    HAPAX_ASSERT(found != places_.end(), "a path names a field that the operation does not have");
    return found->second;
  }
  [[nodiscard]] std::string parameters() const { return parameters_.text(); }
  [[nodiscard]] bool needed() const { return needed_; }

 private:
  [[nodiscard]] bool is_needed(Need need) const {
    return need == Need::kAlways ||
           (need == Need::kUnlessSignedIn && callers_ == Callers::kAnybody);
  }

  template <class Type>
  void add(std::string_view name, const About& about, bool must) {
    Allowed allowed = about.allowed;
    std::string help(about.help);
    if (allowed.need == Need::kUnlessSignedIn && !must) {
      allowed.least = 0;
      help += "; who is signed in, if it is left out or empty";
    }
    JsonObject schema = TypeOf<Type>::schema(allowed);
    if (std::find(elsewhere_.begin(), elsewhere_.end(), name) != elsewhere_.end()) {
      places_.emplace(name, schema.text());
      return;
    }
    needed_ = needed_ || must;
    parameters_.add(JsonObject()
                        .add("name", name)
                        .add("in", "query")
                        .add("required", must)
                        .add("description", help)
                        .raw("schema", schema.text())
                        .text());
    properties_.raw(name, schema.add("description", help).text());
    if constexpr (kMayBeBase64<Type>) {
      properties_.raw(base64_name(name), base64_schema(allowed).text());
      add_forms(name, must);
    } else if (must) {
      required_.add(json_text(name));
    }
  }

  // As text or in base64, but not both.
  void add_forms(std::string_view name, bool must) {
    const std::string encoded = base64_name(name);
    if (!must) return apart({name, encoded});
    JsonArray either;
    either.add(needs({name}));
    either.add(needs({encoded}));
    rule(JsonObject().raw("oneOf", either.text()));
  }
  void rule(const JsonObject& schema) {
    rules_.add(schema.text());
    has_rules_ = true;
  }

  const std::span<const std::string> elsewhere_;
  const Callers callers_;
  JsonObject properties_;
  JsonArray required_;
  JsonObject dependent_;
  bool has_dependent_ = false;
  JsonArray rules_;
  bool has_rules_ = false;
  bool needed_ = false;  // some field must be there
  JsonArray parameters_;
  std::map<std::string, std::string, std::less<>> places_;
};

SchemaFields listen(std::string_view op, const Setting& setting) {
  SchemaFields listener(setting.elsewhere, setting.callers);
  const bool known = with_body(op, [&]<class AnyOp>(const Named<AnyOp>&) {
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
  void take_kind(std::uint64_t) { types_.insert("integer"); }
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

std::string text_schema_of(const Allowed& allowed) { return text_schema(allowed).text(); }
std::string base64_schema_of(const Allowed& allowed) { return base64_schema(allowed).text(); }
std::string number_schema_of(const Allowed& allowed) {
  return number_schema<std::uint64_t>(allowed).text();
}

std::string op_schema(std::string_view op, const Setting& setting, OpName named) {
  SchemaFields listener = listen(op, setting);
  if (named == OpName::kMember) {
    listener.add_raw("op", JsonObject().add("const", op).text());
  }
  return listener.schema();
}

bool needs_body(std::string_view op, const Setting& setting) {
  return listen(op, setting).needed();
}

std::string op_parameters(std::string_view op, const Setting& setting) {
  return listen(op, setting).parameters();
}

std::string place_schema(std::string_view op, const Setting& setting, std::string_view name) {
  return listen(op, setting).schema_of(name);
}

std::string list_schema(std::string_view item) {
  return JsonObject()
      .add("type", "array")
      .raw("items", item)
      .add("minItems", 1)
      .add("maxItems", limits::kCommitOpsMax)
      .text();
}

std::string commit_schema(std::string_view list, std::string_view item) {
  Request request;
  CommitFields commit{request, {}, {}};
  SchemaFields listener({}, Callers::kAnybody);
  fields(listener, commit);
  listener.add_raw(list, list_schema(item));
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
