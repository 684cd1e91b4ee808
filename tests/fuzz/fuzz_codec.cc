// Stored answers, staged operations and record headers. The first byte chooses the decoder.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/commit.h"
#include "core/facts.h"

namespace {

void try_answer(std::string_view bytes) {
  const auto answer = hapax::core::decode_answer(bytes);
  if (!answer) return;
  std::string again;
  hapax::core::encode_answer(*answer, again);
  const auto second = hapax::core::decode_answer(again);
  if (!second || !(*second == *answer)) std::abort();
}

void try_staged(std::string_view bytes) {
  const auto staged = hapax::core::decode_staged(bytes);
  if (!staged) return;
  std::string again;
  if (hapax::core::encode_staged(staged->ops, staged->hashes, staged->streams, again)) std::abort();
  if (!hapax::core::decode_staged(again)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      try_answer(bytes);
      break;
    case 1:
      try_staged(bytes);
      break;
    default:
      hapax::ignore(hapax::core::decode_headers(bytes), "any answer is fine");
      break;
  }
  return 0;
}
