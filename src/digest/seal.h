// Bytes that only whoever has the key can read or change (XChaCha20-Poly1305).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hapax::digest {

inline constexpr std::size_t kSealKeyBytes = 32;
inline constexpr std::size_t kSealNonceBytes = 24;  // so many that random ones never meet

// `bound` is not hidden, and the same must be given to unseal(): what was sealed for one place is
// worth nothing in another. REQUIRES: the sizes above, and no nonce twice under one key.
[[nodiscard]] std::string seal(std::string_view key, std::string_view nonce, std::string_view bound,
                               std::string_view text);

// Nothing unless it was sealed under this key, with this nonce, for this place, and never changed.
[[nodiscard]] std::optional<std::string> unseal(std::string_view key, std::string_view nonce,
                                                std::string_view bound, std::string_view sealed);

}  // namespace hapax::digest
