// B2: a state that is accepted is written back as one that is accepted and the same.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/state_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  hapax::core::State state(2);
  if (!hapax::core::decode_state(bytes, state)) return 0;
  std::string again;
  hapax::core::encode_state(state, again);
  hapax::core::State second(2);
  if (!hapax::core::decode_state(again, second)) std::abort();
  std::string third;
  hapax::core::encode_state(second, third);
  if (third != again) std::abort();
  // Nothing trips over it later: what is over leaves, and the rest is written once more.
  hapax::core::collect(state, hapax::time_from_ms(std::int64_t{1} << 45), 1'000'000);
  hapax::core::encode_state(state, third);
  return 0;
}
