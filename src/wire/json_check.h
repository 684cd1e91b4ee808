// Whether a text is JSON by the rules of the one reader (json_reader.h), without making values of
// it: for payloads that are sent on exactly as they came.
#pragma once

#include <string_view>

namespace hapax::wire {

// JSON as in RFC 8259, and in UTF-8; at most 64 levels deep; no object that has a member twice; no
// half of a surrogate pair. Numbers may be of any size: nobody reads them here. Memory is needed
// only for the names of the objects that are open at a time.
[[nodiscard]] bool is_strict_json(std::string_view text);

}  // namespace hapax::wire
