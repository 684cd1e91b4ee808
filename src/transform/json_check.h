// Whether jq reads an input as it is meant. jq 1.6 accepts more than JSON, replaces bytes that are
// not UTF-8 and half surrogate pairs, and rounds numbers; this check comes first.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "transform/transform.h"

namespace hapax::transform {

// jq's parser takes no deeper nesting.
inline constexpr std::size_t kDepthMax = 256;

// Nothing: the text is one JSON value (RFC 8259) that jq keeps. Otherwise kBadInput or kWouldAlter,
// with the byte at which it was noticed. An object that has a key twice passes; jq keeps the last.
[[nodiscard]] std::optional<TransformFailed> check_json(std::string_view text,
                                                        TransformNumbers numbers);

}  // namespace hapax::transform
