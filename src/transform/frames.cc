#include "transform/frames.h"

#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/encoding.h"
#include "base/format.h"

namespace hapax::transform {

namespace {

using base::Decoder;
using base::Encoder;

constexpr std::size_t kLengthBytes = 4;
// A buffer that one large frame has made larger than this goes back: a worker's memory is limited.
constexpr std::size_t kKeptBytes = std::size_t{1} << 20;

enum class FrameKind : std::uint8_t {
  kDefine = 1,
  kRun = 2,
  kForget = 3,
  kReady = 4,
  kDefined = 5,
  kTransformed = 6,
  kFailed = 7,
};

void encode(const DefineRequest& define, Encoder& out) {
  out.u8(static_cast<std::uint8_t>(FrameKind::kDefine));
  out.u64(define.program.number);
  out.u8(static_cast<std::uint8_t>(define.text.numbers));
  out.bytes(define.text.main);
  out.bytes(define.text.event_type);
  out.bytes(define.text.key);
}

void encode(const RunRequest& run, Encoder& out) {
  out.u8(static_cast<std::uint8_t>(FrameKind::kRun));
  out.u64(run.program.number);
  out.i64(run.time_ms);
  out.raw(run.input);
}

void encode(const ForgetRequest& forget, Encoder& out) {
  out.u8(static_cast<std::uint8_t>(FrameKind::kForget));
  out.u64(forget.program.number);
}

void encode(const ReadyAnswer& ready, Encoder& out) {
  out.u8(static_cast<std::uint8_t>(FrameKind::kReady));
  out.u32(ready.version);
}

void encode(const DefinedAnswer& defined, Encoder& out) {
  out.u8(static_cast<std::uint8_t>(FrameKind::kDefined));
  out.varint(defined.faults.size());
  for (const ProgramFault& fault : defined.faults) {
    out.u8(static_cast<std::uint8_t>(fault.part));
    out.varint(fault.line);
    out.varint(fault.column);
    out.bytes(fault.message);
  }
}

void encode_optional(const std::optional<std::string>& text, Encoder& out) {
  out.u8(text ? 1 : 0);
  if (text) out.bytes(*text);
}

void encode(const RanAnswer& ran, Encoder& out) {
  if (const auto* failed = std::get_if<TransformFailed>(&ran.outcome)) {
    out.u8(static_cast<std::uint8_t>(FrameKind::kFailed));
    out.u8(static_cast<std::uint8_t>(failed->fault));
    out.bytes(failed->message);
    return;
  }
  const auto& outputs = std::get<Transformed>(ran.outcome).outputs;
  out.u8(static_cast<std::uint8_t>(FrameKind::kTransformed));
  out.varint(outputs.size());
  for (const TransformOutput& output : outputs) {
    out.bytes(output.data);
    encode_optional(output.event_type, out);
    encode_optional(output.key, out);
  }
}

template <class Message>
void encode_frame(const Message& message, std::string& out) {
  const std::size_t begin = out.size();
  out.append(kLengthBytes, '\0');
  Encoder encoder(out);
  std::visit([&](const auto& each) { encode(each, encoder); }, message);
  const std::size_t size = out.size() - begin - kLengthBytes;
  HAPAX_ASSERT(size <= kFrameMax, "a frame is not larger than the limits allow");
  const auto length = static_cast<std::uint32_t>(size);
  std::memcpy(out.data() + begin, &length, kLengthBytes);
}

// An enumerator up to the last one; anything else is refused.
template <class Enum>
Enum decode_enum(Decoder& in, Enum last) {
  const std::uint8_t value = in.u8();
  if (value > static_cast<std::uint8_t>(last)) in.refuse();
  return static_cast<Enum>(value);
}

DefineRequest decode_define(Decoder& in) {
  DefineRequest define;
  define.program.number = in.u64();
  define.text.numbers = decode_enum(in, TransformNumbers::kDouble);
  define.text.main = in.bytes();
  define.text.event_type = in.bytes();
  define.text.key = in.bytes();
  return define;
}

RunRequest decode_run(Decoder& in) {
  RunRequest run;
  run.program.number = in.u64();
  run.time_ms = in.i64();
  run.input = in.raw(in.left());
  return run;
}

std::uint32_t decode_u32(Decoder& in) {
  const std::uint64_t value = in.varint();
  if (value > 0xffffffff) in.refuse();
  return static_cast<std::uint32_t>(value);
}

DefinedAnswer decode_defined(Decoder& in) {
  DefinedAnswer defined;
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) {
    ProgramFault fault;
    fault.part = decode_enum(in, ProgramPart::kKey);
    fault.line = decode_u32(in);
    fault.column = decode_u32(in);
    fault.message = in.bytes();
    defined.faults.push_back(std::move(fault));
  }
  return defined;
}

std::optional<std::string> decode_optional(Decoder& in) {
  const std::uint8_t given = in.u8();
  if (given > 1) in.refuse();
  if (given == 0) return std::nullopt;
  return std::string(in.bytes());
}

RanAnswer decode_transformed(Decoder& in) {
  Transformed transformed;
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) {
    TransformOutput output;
    output.data = in.bytes();
    output.event_type = decode_optional(in);
    output.key = decode_optional(in);
    transformed.outputs.push_back(std::move(output));
  }
  return {std::move(transformed)};
}

RanAnswer decode_failed(Decoder& in) {
  TransformFailed failed;
  failed.fault = decode_enum(in, TransformFault::kBadInput);
  failed.message = in.bytes();
  return {std::move(failed)};
}

Error garbage(std::string_view what) {
  return {Errc::kCorruption, base::format("{} of a transform worker makes no sense", what)};
}

}  // namespace

void encode_request(const WorkerRequest& request, std::string& out) { encode_frame(request, out); }

void encode_answer(const WorkerAnswer& answer, std::string& out) { encode_frame(answer, out); }

Result<WorkerRequest> decode_request(std::string_view body) {
  Decoder in(body);
  WorkerRequest request;
  switch (static_cast<FrameKind>(in.u8())) {
    case FrameKind::kDefine:
      request = decode_define(in);
      break;
    case FrameKind::kRun:
      request = decode_run(in);
      break;
    case FrameKind::kForget:
      request = ForgetRequest{{in.u64()}};
      break;
    default:
      in.refuse();
  }
  if (!in.finished()) return garbage("a request");
  return request;
}

Result<WorkerAnswer> decode_answer(std::string_view body) {
  Decoder in(body);
  WorkerAnswer answer;
  switch (static_cast<FrameKind>(in.u8())) {
    case FrameKind::kReady:
      answer = ReadyAnswer{in.u32()};
      break;
    case FrameKind::kDefined:
      answer = decode_defined(in);
      break;
    case FrameKind::kTransformed:
      answer = decode_transformed(in);
      break;
    case FrameKind::kFailed:
      answer = decode_failed(in);
      break;
    default:
      in.refuse();
  }
  if (!in.finished()) return garbage("an answer");
  return answer;
}

Result<std::optional<std::string_view>> FrameBuffer::next() {
  const std::string_view left = std::string_view(bytes_).substr(taken_);
  if (left.size() >= kLengthBytes) {
    const std::uint32_t length = Decoder(left).u32();
    if (length == 0 || length > kFrameMax) return garbage("the length of a frame");
    if (left.size() - kLengthBytes >= length) {
      taken_ += kLengthBytes + length;
      return std::optional(left.substr(kLengthBytes, length));
    }
  }
  // What is left is the beginning of one frame; it moves to the front once per batch.
  bytes_.erase(0, taken_);
  taken_ = 0;
  if (bytes_.capacity() > kKeptBytes && bytes_.size() < kLengthBytes) bytes_.shrink_to_fit();
  return std::optional<std::string_view>{};
}

}  // namespace hapax::transform
