// Frames between a transform pool and its workers, and the check of inputs. Whatever is decoded is
// written back and decoded to the same; a worker's answer never makes the pool read past it.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "transform/frames.h"
#include "transform/json_check.h"

namespace {

using namespace hapax::transform;

std::string only_body(const std::string& frame) {
  FrameBuffer buffer;
  buffer.add(frame);
  const auto body = buffer.next();
  if (!body || !*body) std::abort();
  return std::string(**body);
}

void check_answer(std::string_view body) {
  const auto answer = decode_answer(body);
  if (!answer) return;
  std::string frame;
  encode_answer(*answer, frame);
  const std::string canonical = only_body(frame);
  const auto again = decode_answer(canonical);
  if (!again) std::abort();
  std::string second;
  encode_answer(*again, second);
  if (second != frame) std::abort();
}

void check_request(std::string_view body) {
  const auto request = decode_request(body);
  if (!request) return;
  std::string frame;
  encode_request(*request, frame);
  if (!decode_request(only_body(frame))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_answer(bytes);
  check_request(bytes);
  FrameBuffer buffer;
  for (std::size_t at = 0; at < size; at += 7) {
    buffer.add(bytes.substr(at, 7));
    while (true) {
      const auto body = buffer.next();
      if (!body) return 0;
      if (!*body) break;
      check_answer(**body);
    }
  }
  // What is good for exact numbers is good for doubles.
  if (!check_json(bytes, TransformNumbers::kExact) &&
      check_json(bytes, TransformNumbers::kDouble)) {
    std::abort();
  }
  return 0;
}
