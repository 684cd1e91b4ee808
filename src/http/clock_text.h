// Times and numbers as foreign formats want them.
#pragma once

#include <string>

#include <hapax/time.h>

namespace hapax::http {

[[nodiscard]] std::string clock_text(Time time);       // "2025-09-14T19:41:47Z"
[[nodiscard]] std::string decimal_text(double value);  // "0.023", at most three places

}  // namespace hapax::http
