// The known word that was probably meant.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hapax::wire {

// Nothing, if no known word is close.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view word,
                                                      std::span<const std::string_view> known);

// "; did you mean 'window_s'?", or "; known are 'a', 'b'", to be put behind an error.
[[nodiscard]] std::string suggestion(std::string_view word,
                                     std::span<const std::string_view> known);

}  // namespace hapax::wire
