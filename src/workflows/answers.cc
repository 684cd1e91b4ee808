#include "workflows/answers.h"

#include "client/webhook_sink.h"

namespace hapax::workflows {

using delivery::SendResult;
using delivery::StatusWord;
using webhook::SendReply;

SendResult result_of(const SendReply& reply, std::span<const delivery::StatusRule> rules) {
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

}  // namespace hapax::workflows
