// Ids as in RFC 9562.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace hapax {

struct Uuid {
  std::array<std::uint8_t, 16> bytes{};
  [[nodiscard]] std::string text() const;  // 01a1e432-cc2d-73cc-a0e9-4d7bdc0c27a2
  friend constexpr auto operator<=>(const Uuid&, const Uuid&) = default;
};

// Version 7: milliseconds since 1970, a counter within them, then chance. Those that one process
// makes grow.
[[nodiscard]] Uuid uuid7();

// Version 8: the same for the same name, wherever it is made: SHA-256 over the namespace's bytes
// and the name. The SQL function uuid_of() gives the same.
[[nodiscard]] Uuid uuid_of(const Uuid& space, std::string_view name);

}  // namespace hapax
