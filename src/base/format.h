// Text from a format string and its arguments: format("{} of {} records", sent, all).
//
// The format string is checked against the arguments when it is compiled. This is the only door to
// the library fmt; docs/decisions/0024 says how it stays out of our users' sight.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

// A namespace of our own, so that a program may use libhapax.a beside an fmt of any version.
#define FMT_BEGIN_NAMESPACE \
  namespace fmt {           \
  inline namespace in_hapax {
#define FMT_END_NAMESPACE \
  }                       \
  }
#include <fmt/core.h>

namespace hapax::base {

template <class... Arguments>
using FormatString = fmt::format_string<Arguments...>;

// The same for arguments that are known when the program runs; called by the templates below.
[[nodiscard]] std::string format_all(fmt::string_view text, fmt::format_args arguments);
void append_all(std::string& to, fmt::string_view text, fmt::format_args arguments);
void print_all(std::FILE* file, fmt::string_view text, fmt::format_args arguments);

template <class... Arguments>
[[nodiscard]] std::string format(FormatString<Arguments...> text, Arguments&&... arguments) {
  return format_all(text, fmt::make_format_args(arguments...));
}

template <class... Arguments>
void append_format(std::string& to, FormatString<Arguments...> text, Arguments&&... arguments) {
  append_all(to, text, fmt::make_format_args(arguments...));
}

// Throws std::system_error if the file does not take the text.
template <class... Arguments>
void print(std::FILE* file, FormatString<Arguments...> text, Arguments&&... arguments) {
  print_all(file, text, fmt::make_format_args(arguments...));
}
template <class... Arguments>
void print(FormatString<Arguments...> text, Arguments&&... arguments) {
  print_all(stdout, text, fmt::make_format_args(arguments...));
}

// The elements of a list with the separator between them.
template <class List>
[[nodiscard]] std::string joined(const List& list, std::string_view separator) {
  std::string out;
  for (const auto& element : list) {
    if (&element != &*list.begin()) out += separator;
    out += element;
  }
  return out;
}

}  // namespace hapax::base
