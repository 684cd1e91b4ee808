#include "wire/json_check.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <boost/json/basic_parser_impl.hpp>

#include "wire/json_events.h"
#include "wire/json_reader.h"

namespace hapax::wire {

namespace {

namespace json = boost::json;

// Stops at the end of an object that has a member twice.
class NameCheck : public JsonEvents {
 public:
  bool on_object_begin(ErrorCode&) {
    open_.push_back({names_.size(), ends_.size()});
    return true;
  }
  bool on_object_end(std::size_t, ErrorCode& error) {
    const Open object = open_.back();
    open_.pop_back();
    const bool twice = has_twice(object);
    names_.resize(object.first_byte);
    ends_.resize(object.first_name);
    return twice ? stop(json::error::exception, error) : true;
  }
  bool on_key_part(Text part, std::size_t, ErrorCode&) {
    names_.append(part.data(), part.size());
    return true;
  }
  bool on_key(Text part, std::size_t, ErrorCode&) {
    names_.append(part.data(), part.size());
    ends_.push_back(names_.size());
    return true;
  }

 private:
  struct Open {
    std::size_t first_byte;  // of its names
    std::size_t first_name;
  };

  [[nodiscard]] bool has_twice(const Open& object) {
    if (ends_.size() - object.first_name < 2) return false;
    sorted_.clear();
    std::size_t begin = object.first_byte;
    for (std::size_t i = object.first_name; i < ends_.size(); ++i) {
      sorted_.push_back(std::string_view(names_).substr(begin, ends_[i] - begin));
      begin = ends_[i];
    }
    std::sort(sorted_.begin(), sorted_.end());
    return std::adjacent_find(sorted_.begin(), sorted_.end()) != sorted_.end();
  }

  // The names of all open objects, one behind the other, and where each ends.
  std::string names_;
  std::vector<std::size_t> ends_;
  std::vector<Open> open_;
  std::vector<std::string_view> sorted_;
};

}  // namespace

bool is_strict_json(std::string_view text) {
  json::parse_options options;
  options.max_depth = kRequestRules.depth_max;
  json::basic_parser<NameCheck> parser(options);
  json::error_code error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  return !error && read == text.size();
}

}  // namespace hapax::wire
