// JSON texts as values of Boost.JSON, and nothing that could be understood in two ways: an object
// that names a member twice is refused.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include <boost/json/storage_ptr.hpp>
#include <boost/json/value.hpp>

#include <hapax/result.h>

namespace hapax::wire {

inline constexpr std::size_t kJsonDepthMax = 64;

// Reads one text after the other; what it needs meanwhile is kept for the next.
class JsonReader {
 public:
  JsonReader();
  ~JsonReader();
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  // kInvalidArgument, with line and column. After an error it reads no more.
  [[nodiscard]] Result<boost::json::value> read(std::string_view text,
                                                const boost::json::storage_ptr& storage);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace hapax::wire
