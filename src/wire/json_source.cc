#include "wire/json_source.h"

#include <algorithm>

#include "base/assert.h"

namespace hapax::wire {

namespace {

constexpr bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
constexpr bool ends_scalar(char c) { return c == ',' || c == ']' || c == '}' || is_space(c); }

std::string_view without_space(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return text;
}

// Behind the string whose first quote stands there.
std::size_t string_end(std::string_view text, std::size_t begin) {
  for (std::size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return text.size();
}

// Behind the array or object that the text begins with.
std::size_t structure_end(std::string_view text) {
  std::size_t open = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"') {
      i = string_end(text, i);
      continue;
    }
    ++i;
    if (c == '[' || c == '{') ++open;
    if ((c == ']' || c == '}') && --open == 0) return i;
  }
  return text.size();
}

std::size_t value_end(std::string_view text) {
  if (text.empty()) return 0;
  if (text.front() == '"') return string_end(text, 0);
  if (text.front() == '[' || text.front() == '{') return structure_end(text);
  const auto* end = std::find_if(text.begin(), text.end(), ends_scalar);
  return static_cast<std::size_t>(end - text.begin());
}

// Behind what stands between two values, or between a name and its value.
std::string_view behind_mark(std::string_view text) {
  text = without_space(text);
  if (!text.empty()) text.remove_prefix(1);
  return without_space(text);
}

}  // namespace

JsonItems::JsonItems(std::string_view text) : rest_(without_space(text)) {
  named_ = rest_.starts_with('{');
  find_value();
}

// The bracket or the comma is next.
void JsonItems::find_value() {
  rest_ = behind_mark(rest_);
  if (named_) rest_ = behind_mark(rest_.substr(value_end(rest_)));
}

std::string_view JsonItems::from(std::size_t index) {
  HAPAX_ASSERT(index >= at_, "values are asked for in their order");
  for (; at_ < index; ++at_) {
    rest_.remove_prefix(value_end(rest_));
    find_value();
  }
  return rest_;
}

JsonNames::JsonNames(std::string_view text)
    : rest_(behind_mark(text)), named_(text.starts_with('{')) {}

std::optional<JsonNames::Member> JsonNames::next() {
  if (rest_.empty() || rest_.front() == ']' || rest_.front() == '}') return std::nullopt;
  Member member{.name = {}, .value = rest_};
  if (named_) {
    member.name = rest_.substr(0, value_end(rest_));
    member.value = behind_mark(rest_.substr(member.name.size()));
  }
  rest_ = without_space(member.value.substr(value_end(member.value)));
  if (rest_.starts_with(',')) rest_ = behind_mark(rest_);
  return member;
}

std::string_view json_value_at(std::string_view text) {
  text = without_space(text);
  return text.substr(0, value_end(text));
}

}  // namespace hapax::wire
