// A list of ascending sequences as bytes: the first one, then the distance to the next one each,
// as varints. A run of neighbours takes a byte per sequence.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/ids.h>
#include <hapax/result.h>

namespace hapax::core {

// REQUIRES: strictly ascending, the first at least 1.
void encode_sequences(std::span<const Sequence> sequences, std::string& out);
[[nodiscard]] Result<std::vector<Sequence>> decode_sequences(std::string_view bytes);

}  // namespace hapax::core
