// What an engine tells of the attempts that it made.
#include <utility>

#include "delivery/engine.h"

namespace hapax::delivery {

namespace {

constexpr std::uint64_t kMicrosecondsPerMs = 1'000;

AttemptOutcome class_of(SendResult::Outcome outcome) {
  switch (outcome) {
    case SendResult::Outcome::kDelivered:
      return AttemptOutcome::kDelivered;
    case SendResult::Outcome::kRejected:
    case SendResult::Outcome::kGone:
      return AttemptOutcome::kRejected;
    case SendResult::Outcome::kUnknown:
      return AttemptOutcome::kUnknown;
    case SendResult::Outcome::kTryLater:
    case SendResult::Outcome::kNotSent:
      break;
  }
  return AttemptOutcome::kTryLater;
}

}  // namespace

Attempt Engine::attempt_of(const Endpoint& endpoint, const Start& start, const Entry& entry) const {
  const Outgoing& record = entry.handout.record;
  return {.key = record.id,
          .endpoint = endpoint.policy.name,
          .place = static_cast<std::uint64_t>(record.place),
          .number = record.attempt,
          .replay = record.replay,
          .began_ms = start.began_ms};
}

// Also of records that were lost meanwhile: what left has left, whoever has the record now. What
// was not sent is no attempt.
void Engine::note_attempts(const Endpoint& endpoint, const Start& start, std::size_t run,
                           std::vector<SendResult>& results) {
  if (!settings_.tells_attempts) return;
  for (std::size_t i = 0; i < start.runs[run].numbers.size(); ++i) {
    SendResult& result = results[start.places[run][i]];
    if (result.outcome == SendResult::Outcome::kNotSent) continue;
    Attempt attempt = attempt_of(endpoint, start, entries_.at(start.runs[run].numbers[i]));
    attempt.outcome = class_of(result.outcome);
    attempt.facts = std::move(result.facts);
    // Of a whole answer, the reason is made of the status and the body.
    const bool whole = attempt.facts.status != 0 && result.outcome != SendResult::Outcome::kUnknown;
    if (!whole) attempt.reason = result.reason;
    attempts_.push_back(std::move(attempt));
  }
}

void Engine::note_unanswered(const Endpoint& endpoint, const Start& start, const Entry& entry) {
  if (!settings_.tells_attempts) return;
  Attempt attempt = attempt_of(endpoint, start, entry);
  attempt.outcome = AttemptOutcome::kUnknown;
  attempt.reason = "the sender ended before the answer came";
  const std::int64_t spent_ms = clock_.steady_ms() - start.began_ms;
  attempt.facts.times.total = static_cast<std::uint64_t>(spent_ms) * kMicrosecondsPerMs;
  attempts_.push_back(std::move(attempt));
}

void Engine::tell_attempts() {
  if (attempts_.empty()) return;
  source_.note_attempts(std::exchange(attempts_, {}));
}

}  // namespace hapax::delivery
