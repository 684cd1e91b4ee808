#include "wire/text_value.h"

#include "digest/base64.h"

namespace hapax::wire {

std::optional<std::string> bytes_of_base64(std::string_view text) {
  std::string standard(text);
  for (char& c : standard) {
    if (c == '-' || c == ' ') c = '+';
    if (c == '_') c = '/';
  }
  return digest::decode_base64(standard);
}

}  // namespace hapax::wire
