// An attempt to deliver one record, as it is told to whoever keeps a log.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hapax::delivery {

// What an attempt came to, for people.
enum class AttemptOutcome : std::uint8_t {
  kDelivered,  // the endpoint confirmed it
  kRejected,   // the endpoint does not take this record, or is gone
  kTryLater,   // certainly not taken, for a reason that may pass
  kUnknown,    // it may have arrived: bytes left, and no complete answer came
};
inline constexpr std::array<std::string_view, 4> kAttemptOutcomes{"delivered", "rejected",
                                                                  "try-later", "unknown"};
[[nodiscard]] inline std::string_view word_of(AttemptOutcome outcome) {
  return kAttemptOutcomes[static_cast<std::size_t>(outcome)];
}

// In microseconds since the attempt's turn came; 0: that phase was not reached or not needed.
struct AttemptTimes {
  std::uint64_t waited = 0;  // before its turn came
  std::uint64_t name = 0;    // the name of the host was found
  std::uint64_t connected = 0;
  std::uint64_t tls = 0;
  std::uint64_t first_byte = 0;  // of the answer
  std::uint64_t total = 0;
  friend bool operator==(const AttemptTimes&, const AttemptTimes&) = default;
};

// What a sink knows of an attempt beside what became of the record.
struct AttemptFacts {
  AttemptTimes times{};
  int status = 0;           // of the answer; 0: none came
  std::string answer{};     // the beginning of its body, if the record was not delivered
  bool answer_cut = false;  // there was more of the body
};

struct Attempt {
  std::string key;            // of the delivery: Outgoing::id
  std::string endpoint{};     // its name; empty: the workflow has no other
  std::uint64_t place = 0;    // of the record in its source: a sequence, or a number of a row
  std::uint32_t number = 1;   // of the attempts that count
  std::uint32_t replay = 0;   // how often a person had the record sent again before
  std::int64_t began_ms = 0;  // by the steady clock of this process
  AttemptOutcome outcome = AttemptOutcome::kDelivered;
  AttemptFacts facts{};
  std::string reason{};  // empty: the answer says it
};

}  // namespace hapax::delivery
