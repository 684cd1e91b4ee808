#include "base/format.h"

#include <iterator>

// fmt itself: this file is where its code is compiled, once, into our archive.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl<char>(locale_ref);
}  // namespace detail
FMT_END_NAMESPACE

namespace hapax::base {

std::string format_all(fmt::string_view text, fmt::format_args arguments) {
  return fmt::vformat(text, arguments);
}

void append_all(std::string& to, fmt::string_view text, fmt::format_args arguments) {
  fmt::vformat_to(std::back_inserter(to), text, arguments);
}

void print_all(std::FILE* file, fmt::string_view text, fmt::format_args arguments) {
  fmt::vprint(file, text, arguments);
}

}  // namespace hapax::base
