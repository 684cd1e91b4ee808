#include "wire/json_member.h"

#include <charconv>

#include "base/assert.h"
#include "wire/json_source.h"
#include "wire/strict_json.h"

namespace hapax::wire {

namespace {

// REQUIRES: a string of a strict JSON text.
std::string unescaped(std::string_view quoted) {
  const std::string_view inside = quoted.substr(1, quoted.size() - 2);
  if (inside.find('\\') == std::string_view::npos) return std::string(inside);
  const auto read = read_strict_json(quoted);
  HAPAX_ASSERT(read.ok() && read->get<std::string>() != nullptr, "the text was found to be JSON");
  return *read->get<std::string>();
}

// An array counts as RFC 6901 says: "0", "17", and no "01".
std::optional<std::size_t> index_of(std::string_view name) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool whole = error == std::errc{} && end == name.data() + name.size();
  if (!whole || (name.size() > 1 && name.front() == '0')) return std::nullopt;
  return index;
}

// Of the member of that name, or nothing.
std::optional<std::string_view> step_into(std::string_view value, const std::string& name) {
  const bool object = value.starts_with('{');
  const auto wanted = value.starts_with('[') ? index_of(name) : std::nullopt;
  if (!object && !wanted) return std::nullopt;
  JsonNames names(value);
  for (std::size_t at = 0; const auto member = names.next(); ++at) {
    const bool found = object ? unescaped(member->name) == name : at == *wanted;
    if (found) return json_value_at(member->value);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> json_member(std::string_view text,
                                            std::span<const std::string> path) {
  std::string_view value = json_value_at(text);
  for (const std::string& name : path) {
    const auto inner = step_into(value, name);
    if (!inner) return std::nullopt;
    value = *inner;
  }
  return value;
}

std::optional<std::string> json_scalar_text(std::string_view value) {
  const bool none =
      value.empty() || value == "null" || value.front() == '{' || value.front() == '[';
  if (none) return std::nullopt;
  if (value.front() == '"') return unescaped(value);
  return std::string(value);
}

}  // namespace hapax::wire
