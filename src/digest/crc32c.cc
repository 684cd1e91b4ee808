#include "digest/crc32c.h"

#include <isa-l/crc.h>

namespace hapax::digest {

std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed) {
  // The library takes a mutable pointer and an int length; it writes nothing. Pieces keep the
  // length within an int.
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  std::uint32_t state = ~seed;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPiece);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(piece.data()));
    state = crc32_iscsi(data, static_cast<int>(piece.size()), state);
    bytes.remove_prefix(piece.size());
  }
  return ~state;
}

}  // namespace hapax::digest
