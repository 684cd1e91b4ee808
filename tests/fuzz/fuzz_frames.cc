// Frames of records from a client: whatever is accepted is written back to the same bytes.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "rest/record_frames.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto frames = hapax::rest::decode_frames(body);
  if (frames && hapax::rest::encode_frames(*frames) != body) std::abort();
  static_cast<void>(hapax::rest::read_frames("s", body));
  return 0;
}
