// Numbers as a foreign format wants them.
#pragma once

#include <string>

namespace hapax::rest {

[[nodiscard]] std::string decimal_text(double value);  // "0.023", at most three places

}  // namespace hapax::rest
