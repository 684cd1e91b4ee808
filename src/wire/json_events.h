// What Boost.JSON's parser calls for every piece of a text; false stops it. Here nothing is done:
// who wants some of them hides these.
#pragma once

#include <cstddef>
#include <cstdint>

#include <boost/json/array.hpp>
#include <boost/json/error.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/string_view.hpp>

namespace hapax::wire {

struct JsonEvents {
  using Text = boost::json::string_view;
  using ErrorCode = boost::json::error_code;

  static constexpr std::size_t max_object_size = boost::json::object::max_size();
  static constexpr std::size_t max_array_size = boost::json::array::max_size();
  static constexpr std::size_t max_key_size = boost::json::string::max_size();
  static constexpr std::size_t max_string_size = boost::json::string::max_size();

  static bool stop(boost::json::error why, ErrorCode& error) {
    error = why;
    return false;
  }
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
