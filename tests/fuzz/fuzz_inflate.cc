// N1: whatever was packed, nothing larger than the limits comes out.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "inflate/inflate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using hapax::inflate::Encoding;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const hapax::inflate::Limits limits{.bytes_max = 100'000, .ratio_max = 50, .free_bytes = 1'000};
  for (const Encoding encoding : {Encoding::kGzip, Encoding::kZstd}) {
    const auto out = hapax::inflate::inflate(encoding, bytes, limits);
    if (out && out->size() > limits.bytes_max) std::abort();
    if (out && out->size() > limits.free_bytes && out->size() > size * limits.ratio_max) {
      std::abort();
    }
  }
  return 0;
}
