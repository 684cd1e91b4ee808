// When keys go, as Redis' commands say it. What is wrong is answered in Redis' words.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <hapax/ops.h>

namespace hapax::resp {

inline constexpr std::string_view kNotANumber = "value is not an integer or out of range";

enum class ExpiryUnit : std::uint8_t {
  kSeconds,
  kMilliseconds,
  kSecondsSince1970,
  kMillisecondsSince1970,
};
// EX, PX, EXAT, PXAT.
[[nodiscard]] std::optional<ExpiryUnit> expiry_unit(std::string_view word);

using ExpiryOrProblem = std::variant<Expiry, std::string>;
// Of EXPIRE and its like: what lies in the past removes the key.
[[nodiscard]] ExpiryOrProblem expiry_of(std::string_view amount, ExpiryUnit unit,
                                        std::string_view command);
// Of SET and its like: it must be above 0.
[[nodiscard]] ExpiryOrProblem expiry_from_now_on(std::string_view amount, ExpiryUnit unit,
                                                 std::string_view command);

// NX, XX, GT, LT.
[[nodiscard]] std::variant<ExpireIf, std::string> read_expire_if(
    std::span<const std::string_view> options);

}  // namespace hapax::resp
