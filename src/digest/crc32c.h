// CRC-32C of bytes, continued from an earlier one.
#pragma once

#include <cstdint>
#include <string_view>

namespace hapax::digest {

[[nodiscard]] std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed = 0);

}  // namespace hapax::digest
