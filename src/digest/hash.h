// Keyed 128-bit hashing (SipHash-2-4-128 under a key of the store, so that nobody outside can make
// two ids collide) and SHA-256 for content ids that other systems can compute too.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/hash128.h"

namespace hapax::digest {

using HashKey = std::array<unsigned char, 16>;

[[nodiscard]] base::Hash128 hash128(const HashKey& key, std::string_view bytes);

// Hash of several pieces, unambiguous in where one ends and the next begins.
[[nodiscard]] base::Hash128 hash128(const HashKey& key, std::span<const std::string_view> pieces);

[[nodiscard]] std::string sha256(std::string_view bytes);  // 32 raw bytes

}  // namespace hapax::digest
