// What a transform is: up to three jq programs of one workflow, and what they make of a record.
//
// `main` gets the record's data as its input. Each value it outputs becomes one output record: none
// filters the record out, several fan it out. Keys of objects come in the order of insertion, as jq
// prints them. `event_type` and `key`, where given, run once per output: `.` is the output,
// `$input` the record's data, and each must give exactly one string. An error in any of the three
// fails the record as a whole.
//
// A transform that runs again gives the same bytes. So `now` is the record's time in seconds, and
// what depends on the machine or on other records is refused when it is compiled: `env`, `$ENV`,
// `input`, `inputs`, `import`, `include`, `localtime`, `debug` and the others of
// jq/bytecode.cc. jq 1.6 holds numbers as doubles; see number_check.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <hapax/time.h>

namespace hapax::transform {

enum class TransformNumbers : std::uint8_t {
  kExact,   // An input with a number that a double does not keep fails: kWouldAlter.
  kDouble,  // Such a number becomes the nearest double.
};

struct TransformText {
  std::string main;
  std::string event_type;  // empty: outputs have no event type of their own
  std::string key;         // empty: outputs have no key of their own
  TransformNumbers numbers = TransformNumbers::kExact;
};

enum class ProgramPart : std::uint8_t { kMain, kEventType, kKey };

struct ProgramFault {
  ProgramPart part = ProgramPart::kMain;
  std::uint32_t line = 0;    // from 1; 0: jq names no place
  std::uint32_t column = 0;  // from 1, in bytes; 0: jq names no place
  std::string message;
  friend bool operator==(const ProgramFault&, const ProgramFault&) = default;
};

struct ProgramId {
  std::uint64_t number = 0;
  friend auto operator<=>(const ProgramId&, const ProgramId&) = default;
};

// Faults of the text are an expected answer: whoever wrote the program gets them.
using Compiled = std::variant<ProgramId, std::vector<ProgramFault>>;

struct TransformOutput {
  std::string data;  // JSON
  std::optional<std::string> event_type;
  std::optional<std::string> key;
  friend bool operator==(const TransformOutput&, const TransformOutput&) = default;
};

struct Transformed {
  std::vector<TransformOutput> outputs;
  friend bool operator==(const Transformed&, const Transformed&) = default;
};

enum class TransformFault : std::uint8_t {
  kError,          // the program raised an error; the message is jq's
  kTimeout,        // the record ran longer than time_max
  kMemory,         // the record needed more than memory_max
  kCrashed,        // the record ended its worker by a signal
  kTooMuchOutput,  // more than output_max bytes or outputs_max outputs
  kWouldAlter,     // jq would change the input by reading it
  kBadInput,       // the input is not JSON
};

struct TransformFailed {
  TransformFault fault = TransformFault::kError;
  std::string message;
  friend bool operator==(const TransformFailed&, const TransformFailed&) = default;
};

using TransformOutcome = std::variant<Transformed, TransformFailed>;

struct TransformSettings {
  std::size_t workers = 2;
  Duration time_max{1'000};                        // of one record
  std::size_t memory_max = std::size_t{64} << 20;  // of one worker's heap
  std::size_t output_max = std::size_t{4}
                           << 20;    // bytes of all outputs of one record; at most kInputMax
  std::size_t outputs_max = 1'000;   // outputs of one record
  std::size_t programs_max = 1'000;  // that one worker keeps compiled
  std::size_t waiting_max = std::size_t{256} << 20;  // bytes of the records that wait and run
  std::string worker;                                // its program; empty: hapax-jq beside ours
};

// The ranges of the settings.
inline constexpr std::size_t kWorkersMax = 64;
inline constexpr std::size_t kTimeMsMax = 600'000;
inline constexpr std::size_t kMemoryMin = std::size_t{16} << 20;
inline constexpr std::size_t kMemoryMax = std::size_t{64} << 30;
inline constexpr std::size_t kOutputsMax = 100'000;
inline constexpr std::size_t kProgramsMax = 100'000;

// The longest program text and the largest input of one record.
inline constexpr std::size_t kProgramMax = std::size_t{64} << 10;
inline constexpr std::size_t kInputMax = std::size_t{32} << 20;

}  // namespace hapax::transform
