// A fact that parses is written back as the same bytes: nothing is read that is not kept.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/facts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto fact = hapax::core::decode_fact(bytes);
  if (!fact) return 0;
  std::string again;
  hapax::core::encode(*fact, again);
  const auto second = hapax::core::decode_fact(again);
  if (!second || second->index() != fact->index()) std::abort();
  // A varint may be longer than it must be; written once more it is stable.
  std::string third;
  hapax::core::encode(*second, third);
  if (third != again) std::abort();
  return 0;
}
