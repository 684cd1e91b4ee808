// Attempts as the payload of a record of a log. The format is docs/internals/attempt-log.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

#include "delivery/attempt.h"

namespace hapax::delivery {

inline constexpr std::size_t kAttemptsPerRecord = 4'096;  // at most

// Appends attempts to a payload until it is full.
class AttemptWriter {
 public:
  // `now_ms`: by the clock that the attempts began by.
  explicit AttemptWriter(std::int64_t now_ms) : now_ms_(now_ms) {}

  void add(const Attempt& attempt);
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const std::string& payload() const { return payload_; }

 private:
  const std::int64_t now_ms_;
  std::size_t count_ = 0;
  std::string endpoint_{};  // of the attempt before
  std::string payload_;
};

// An attempt of a log. Both times are those of the log's clock, whichever process made it.
struct LoggedAttempt {
  Time noted{};  // when the log was told, in the commit that settled it
  Time began{};
  Attempt attempt{};  // without began_ms
};

// Of a record that was appended at `noted`. kCorruption: it is not of a log of attempts.
[[nodiscard]] Result<std::vector<LoggedAttempt>> read_attempts(std::string_view payload,
                                                               Time noted);

}  // namespace hapax::delivery
