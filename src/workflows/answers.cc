#include "workflows/answers.h"

#include <algorithm>
#include <chrono>

#include "client/webhook_sink.h"

namespace hapax::workflows {

using delivery::SendResult;
using delivery::StatusWord;
using webhook::SendReply;

namespace {

std::uint64_t count_of(std::chrono::microseconds time) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
}

// Of a record that was delivered, nobody asks what the endpoint said to it.
delivery::AttemptFacts facts_of(const SendReply& reply, bool delivered) {
  const webhook::PhaseTimes& times = reply.times;
  delivery::AttemptFacts facts{.times = {.waited = count_of(times.waited),
                                         .name = count_of(times.name),
                                         .connected = count_of(times.connected),
                                         .tls = count_of(times.tls),
                                         .first_byte = count_of(times.first_byte),
                                         .total = count_of(times.total)},
                               .status = reply.status};
  if (delivered) return facts;
  facts.answer = reply.body;
  facts.answer_cut = reply.truncated;
  return facts;
}

SendResult judged(const SendReply& reply, std::span<const delivery::StatusRule> rules) {
  SendResult result = client::send_result_of(reply);
  // Without a whole answer nobody knows what it would have said.
  if (reply.ending != webhook::SendEnding::kAnswered) {
    result.hopeless = reply.cause == webhook::SendCause::kInvalid;
    return result;
  }
  const auto word = delivery::word_for_status(rules, reply.status);
  if (!word) return result;
  switch (*word) {
    case StatusWord::kDelivered:
      return {};
    case StatusWord::kRetry:
      result.outcome = SendResult::Outcome::kTryLater;
      result.after = client::pause_asked_by(reply);
      break;
    case StatusWord::kReject:
    case StatusWord::kDeadLetter:
      result.outcome = SendResult::Outcome::kRejected;
      result.hopeless = *word == StatusWord::kDeadLetter;
      result.after = Duration{0};
      break;
    case StatusWord::kDisable:
      result.outcome = SendResult::Outcome::kGone;
      result.after = Duration{0};
      break;
  }
  result.answered = true;
  if (result.reason.empty()) result.reason = client::answer_in_words(reply);
  return result;
}

}  // namespace

SendResult result_of(const SendReply& reply, std::span<const delivery::StatusRule> rules) {
  SendResult result = judged(reply, rules);
  result.facts = facts_of(reply, result.outcome == SendResult::Outcome::kDelivered);
  return result;
}

}  // namespace hapax::workflows
