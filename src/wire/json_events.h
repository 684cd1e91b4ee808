// What the parser of Boost.JSON calls for every piece of a text, for handlers that care about some
// of it. False stops the parser.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <system_error>

#include <boost/json/error.hpp>
#include <boost/json/string_view.hpp>

namespace hapax::wire {

// The double nearest to a number as it was written. Boost.JSON multiplies by a power of ten and may
// end up at the neighbour, which is another whole number. REQUIRES: the whole number, as on_double
// is given it when the text is parsed in one piece.
[[nodiscard]] inline double nearest_double(boost::json::string_view number, double computed) {
  double nearest = 0;
  const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), nearest);
  // What is out of range is infinite either way.
  return failed == std::errc{} && end == number.data() + number.size() ? nearest : computed;
}

struct JsonEvents {
  using Text = boost::json::string_view;
  using ErrorCode = boost::json::error_code;

  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();

  bool on_document_begin(ErrorCode&) { return true; }
  bool on_document_end(ErrorCode&) { return true; }
  bool on_object_begin(ErrorCode&) { return true; }
  bool on_object_end(std::size_t, ErrorCode&) { return true; }
  bool on_array_begin(ErrorCode&) { return true; }
  bool on_array_end(std::size_t, ErrorCode&) { return true; }
  bool on_key_part(Text, std::size_t, ErrorCode&) { return true; }
  bool on_key(Text, std::size_t, ErrorCode&) { return true; }
  bool on_string_part(Text, std::size_t, ErrorCode&) { return true; }
  bool on_string(Text, std::size_t, ErrorCode&) { return true; }
  bool on_number_part(Text, ErrorCode&) { return true; }
  bool on_int64(std::int64_t, Text, ErrorCode&) { return true; }
  bool on_uint64(std::uint64_t, Text, ErrorCode&) { return true; }
  bool on_double(double, Text, ErrorCode&) { return true; }
  bool on_bool(bool, ErrorCode&) { return true; }
  bool on_null(ErrorCode&) { return true; }
  bool on_comment_part(Text, ErrorCode&) { return true; }
  bool on_comment(Text, ErrorCode&) { return true; }
};

}  // namespace hapax::wire
