// Text as the bytes that OpenSSL takes.
#pragma once

#include <string_view>

namespace hapax::auth {

[[nodiscard]] inline const unsigned char* octets(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace hapax::auth
