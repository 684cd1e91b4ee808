// Base64 as in RFC 4648.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hapax::digest {

enum class Base64 : std::uint8_t { kStandard, kUrl };  // kUrl: other alphabet, written unpadded

[[nodiscard]] std::string encode_base64(std::string_view bytes, Base64 variant = Base64::kStandard);
// Nothing for text that is not base64. Padding may be left out.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text,
                                                       Base64 variant = Base64::kStandard);

}  // namespace hapax::digest
