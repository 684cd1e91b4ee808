// Commands from anywhere: the same commands, or the same refusal, however the bytes arrive.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "resp/parser.h"

namespace {

using hapax::resp::Parsed;
using hapax::resp::Parser;
using hapax::resp::ParserLimits;

constexpr ParserLimits kLimits{.arguments_max = 64,
                               .argument_bytes_max = 1'024,
                               .command_bytes_max = 4'096,
                               .line_bytes_max = 256};

std::string told(std::string_view bytes, std::size_t step) {
  std::string told;
  std::size_t begin = 0;
  Parser parser(kLimits);
  for (std::size_t end = 0; end < bytes.size();) {
    end = std::min(bytes.size(), end + step);
    for (;;) {
      const Parsed parsed = parser.parse(bytes.substr(begin, end - begin));
      if (parsed == Parsed::kBroken) return told + "broken";
      if (parsed == Parsed::kMore) break;
      if (parser.consumed() == 0 || parser.consumed() > end - begin) std::abort();
      for (const std::string_view argument : parser.arguments()) {
        if (argument.size() > kLimits.command_bytes_max) std::abort();
        told.append(std::to_string(argument.size())).append(":").append(argument);
      }
      told += "\n";
      begin += parser.consumed();
    }
  }
  return told;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = told(bytes, bytes.size() + 1);
  if (told(bytes, 1) != whole || told(bytes, 5) != whole) std::abort();
  return 0;
}
