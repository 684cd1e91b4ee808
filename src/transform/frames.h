// The bytes between a pool and its workers.
//
// A frame is its length (u32) and a body; the body's first byte says what it is. Requests go to the
// worker, which answers DefineRequest and RunRequest in the order they came. A worker is not
// trusted: decode_answer refuses whatever the encoder would not have written.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <hapax/result.h>

#include "transform/transform.h"

namespace hapax::transform {

// A larger frame is garbage.
inline constexpr std::size_t kFrameMax = std::size_t{64} << 20;
// Both sides come from one build; the number catches an old program that was left behind.
inline constexpr std::uint32_t kProtocolVersion = 1;

// How a worker ends when it is not killed. kExitMemory: it met its limit.
inline constexpr int kExitUsage = 64;
inline constexpr int kExitMemory = 70;
inline constexpr int kExitSandbox = 71;
inline constexpr int kExitLibrary = 72;

// A worker holds answers back for so long at most, unless it is inside a record: then nothing has
// come for kAnswerDelay plus the time that the record has run.
inline constexpr std::chrono::milliseconds kAnswerDelay{1};

struct DefineRequest {
  ProgramId program;
  TransformText text;
};
struct RunRequest {
  ProgramId program;
  std::int64_t time_ms = 0;  // the record's time
  std::string_view input;
};
struct ForgetRequest {
  ProgramId program;
};
using WorkerRequest = std::variant<DefineRequest, RunRequest, ForgetRequest>;

// The worker's first frame: it has locked itself in.
struct ReadyAnswer {
  std::uint32_t version = kProtocolVersion;
};
struct DefinedAnswer {
  std::vector<ProgramFault> faults;  // none: the program is defined
};
struct RanAnswer {
  TransformOutcome outcome;
};
using WorkerAnswer = std::variant<ReadyAnswer, DefinedAnswer, RanAnswer>;

// Append one frame.
void encode_request(const WorkerRequest& request, std::string& out);
void encode_answer(const WorkerAnswer& answer, std::string& out);

// From a body. The request's input refers to it.
[[nodiscard]] Result<WorkerRequest> decode_request(std::string_view body);
[[nodiscard]] Result<WorkerAnswer> decode_answer(std::string_view body);

// Bytes as they arrive, frames as they are complete.
class FrameBuffer {
 public:
  void add(std::string_view bytes) { bytes_.append(bytes); }

  // The next body, or nothing yet; an error if no frame can begin like this. A body is valid until
  // next() finds none, or add() is called.
  [[nodiscard]] Result<std::optional<std::string_view>> next();

 private:
  std::string bytes_;
  std::size_t taken_ = 0;
};

}  // namespace hapax::transform
