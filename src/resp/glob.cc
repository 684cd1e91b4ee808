#include "resp/glob.h"

#include <cstddef>
#include <utility>

namespace hapax::resp {

namespace {

unsigned char byte(char c) { return static_cast<unsigned char>(c); }

// One element of a pattern: how long it is there, and whether it fits the byte. A class that is
// not closed goes up to the end, as in Redis.
struct Element {
  std::size_t length = 1;
  bool fits = false;
};

Element match_class(std::string_view pattern, char c) {
  std::size_t at = 1;
  const bool negated = at < pattern.size() && pattern[at] == '^';
  if (negated) ++at;
  bool found = false;
  for (; at < pattern.size() && pattern[at] != ']'; ++at) {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) {
      ++at;
      found = found || pattern[at] == c;
    } else if (at + 2 < pattern.size() && pattern[at + 1] == '-') {
      unsigned char first = byte(pattern[at]);
      unsigned char last = byte(pattern[at + 2]);
      if (first > last) std::swap(first, last);
      at += 2;
      found = found || (byte(c) >= first && byte(c) <= last);
    } else {
      found = found || pattern[at] == c;
    }
  }
  const std::size_t length = at < pattern.size() ? at + 1 : pattern.size();
  return {length, found != negated};
}

Element match_one(std::string_view pattern, char c) {
  if (pattern.front() == '?') return {1, true};
  if (pattern.front() == '[') return match_class(pattern, c);
  if (pattern.front() == '\\' && pattern.size() > 1) return {2, pattern[1] == c};
  return {1, pattern.front() == c};
}

}  // namespace

// Only the latest * is ever tried again: what an earlier one could match, the latest can, too.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;  // behind the latest *
  std::size_t tried = 0;                      // where what follows it was tried
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      tried = t;
      continue;
    }
    const Element element =
        p < pattern.size() ? match_one(pattern.substr(p), text[t]) : Element{0, false};
    if (element.fits) {
      p += element.length;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star;
      t = ++tried;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace hapax::resp
