// Answers of whoever a client or a relay calls: the same answer, or the same refusal, however the
// bytes arrive; an interim answer is never taken for the final one.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "http/response_reader.h"

namespace {

using hapax::http::ResponseReader;

constexpr std::size_t kBodyMax = 4'096;

// In pieces a head is judged when it is whole, so that the connection may end before: one refusal
// is as good as the other.
constexpr const char* kRefused = "refused";

// What a connection that gets `step` bytes at a time, and then its end, would hand on.
std::string told(std::string_view bytes, std::size_t step) {
  ResponseReader reader(kBodyMax);
  bool complete = false;
  for (std::size_t at = 0; at < bytes.size() && !complete; at += step) {
    const auto put = reader.put(bytes.substr(at, step));
    if (!put) return kRefused;
    complete = *put;
  }
  if (!complete && !reader.end()) return kRefused;
  const hapax::http::Response response = reader.take();
  if (response.status / 100 == 1 || response.body.size() > kBodyMax) std::abort();
  return std::to_string(response.status) + " " + response.body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = told(bytes, bytes.size() + 1);
  if (told(bytes, 1) != whole || told(bytes, 7) != whole) std::abort();
  return 0;
}
