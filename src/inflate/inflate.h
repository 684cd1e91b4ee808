// Bodies that were compressed on the way, with an end to what they may become.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/result.h>

namespace hapax::inflate {

enum class Encoding : std::uint8_t { kGzip, kZstd };

// As Content-Encoding names it, in any case; nothing for others.
[[nodiscard]] std::optional<Encoding> encoding_of(std::string_view name);

// N1: a body never becomes larger than `bytes_max`, nor, beyond `free_bytes`, larger than
// `ratio_max` times what was sent: memory is bounded by what a sender pays for in bytes.
struct Limits {
  std::size_t bytes_max = std::size_t{48} << 20;
  std::size_t ratio_max = 200;
  std::size_t free_bytes = std::size_t{1} << 20;
};

// kInvalidArgument: it is broken, or something stands behind it. kLimitExceeded: it would grow
// beyond a limit.
[[nodiscard]] Result<std::string> inflate(Encoding encoding, std::string_view bytes,
                                          const Limits& limits);

}  // namespace hapax::inflate
