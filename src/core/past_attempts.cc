#include "core/past_attempts.h"

#include <algorithm>
#include <utility>

#include <hapax/limits.h>

namespace hapax::core {

namespace {

std::size_t text_of(const PastAttempts& past) {
  std::size_t bytes = 0;
  for (const PastAttempt& attempt : past) bytes += attempt.owner.size() + attempt.reason.size();
  return bytes;
}

}  // namespace

bool is_within_limits(const PastAttempts& past) {
  return past.size() <= limits::kHistoryAttemptsMax && text_of(past) <= limits::kHistoryBytesMax;
}

void add_attempt(PastAttempts& past, PastAttempt attempt) {
  past.push_back(std::move(attempt));
  while (!is_within_limits(past)) past.erase(past.begin());
}

std::uint64_t past_memory(const PastAttempts& past) {
  return past.empty() ? 0 : 64 + past.size() * sizeof(PastAttempt) + text_of(past);
}

std::string_view last_reason(const PastAttempts& past) {
  const auto nacked = std::find_if(past.rbegin(), past.rend(), [](const PastAttempt& attempt) {
    return attempt.ending == AttemptEnding::kNacked;
  });
  return nacked == past.rend() ? std::string_view{} : std::string_view{nacked->reason};
}

}  // namespace hapax::core
