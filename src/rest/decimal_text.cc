#include "rest/decimal_text.h"

#include <cstdio>

namespace hapax::rest {

std::string decimal_text(double value) {
  char digits[64];
  std::snprintf(digits, sizeof digits, "%.3f", value);
  std::string text(digits);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.push_back('0');
  return text;
}

}  // namespace hapax::rest
