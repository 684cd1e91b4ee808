#include "core/sequences.h"

#include <cstdint>

#include "base/assert.h"
#include "base/encoding.h"
#include "base/format.h"

namespace hapax::core {

void encode_sequences(std::span<const Sequence> sequences, std::string& out) {
  base::Encoder encoder(out);
  Sequence before;
  for (const Sequence sequence : sequences) {
    HAPAX_ASSERT(sequence > before, "sequences ascend");
    encoder.varint(sequence.value - before.value);
    before = sequence;
  }
}

Result<std::vector<Sequence>> decode_sequences(std::string_view bytes) {
  std::vector<Sequence> sequences;
  sequences.reserve(bytes.size());  // A sequence has at least one byte.
  base::Decoder decoder(bytes);
  Sequence before;
  while (decoder.ok() && decoder.left() > 0) {
    const std::uint64_t distance = decoder.varint();
    const Sequence sequence{before.value + distance};
    if (sequence <= before) decoder.refuse();  // No distance, or past the largest number.
    sequences.push_back(sequence);
    before = sequence;
  }
  if (!decoder.ok()) {
    return Error{Errc::kCorruption,
                 base::format("a list of sequences of {} bytes does not parse", bytes.size())};
  }
  return sequences;
}

}  // namespace hapax::core
