#include "wire/strict_json.h"

#include <array>

#include <boost/json/monotonic_resource.hpp>

#include "wire/json_reader.h"

namespace hapax::wire {

namespace json = boost::json;

namespace {

// Deep as it was read, which is not far.
JsonValue value_of(const json::value& read) {
  switch (read.kind()) {
    case json::kind::null:
      break;
    case json::kind::bool_:
      return {read.get_bool()};
    case json::kind::int64:
      return {read.get_int64()};
    case json::kind::uint64:
      return {read.get_uint64()};
    case json::kind::double_:
      return {read.get_double()};
    case json::kind::string:
      return {std::string(read.get_string().data(), read.get_string().size())};
    case json::kind::array: {
      JsonValue::Array array;
      array.reserve(read.get_array().size());
      for (const json::value& one : read.get_array()) array.push_back(value_of(one));
      return {std::move(array)};
    }
    case json::kind::object: {
      JsonValue::Object object;
      object.reserve(read.get_object().size());
      for (const auto& member : read.get_object()) {
        object.push_back({std::string(member.key()), value_of(member.value())});
      }
      return {std::move(object)};
    }
  }
  return {};
}

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
  std::array<unsigned char, 4'096> usual;
  json::monotonic_resource memory(usual.data(), usual.size());
  JsonReader reader(kDocumentRules);
  HAPAX_TRY(const json::value value, reader.read(text, &memory));
  return value_of(value);
}

}  // namespace hapax::wire
