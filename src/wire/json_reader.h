// The one reader of JSON texts. What two programs could understand differently is refused: a member
// that stands twice in its object, bytes that are not UTF-8, anything behind the value. Values of
// Boost.JSON, for this room; other rooms read JsonValue (strict_json.h), which is made of them.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <string_view>

#include <boost/json/storage_ptr.hpp>
#include <boost/json/value.hpp>

#include <hapax/result.h>

namespace hapax::wire {

// What is read, as far as it matters: the sizes it may have, and what its errors may tell.
struct JsonRules {
  std::size_t depth_max;
  std::size_t members_max;   // of one object
  std::string_view subject;  // of the sentences
  bool secret;               // The errors tell places, and no byte of the text.
};
inline constexpr JsonRules kRequestRules{64, std::numeric_limits<std::size_t>::max(), "the body",
                                         false};
inline constexpr JsonRules kDocumentRules{16, 256, "it", true};

// Reads one text after the other; what it needs meanwhile is kept for the next.
class JsonReader {
 public:
  explicit JsonReader(const JsonRules& rules);
  ~JsonReader();
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  // kInvalidArgument, with line and column.
  [[nodiscard]] Result<boost::json::value> read(std::string_view text,
                                                const boost::json::storage_ptr& storage);

 private:
  struct Parser;
  const JsonRules rules_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace hapax::wire
