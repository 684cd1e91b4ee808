#include "workflows/answers.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::workflows {
namespace {

using delivery::SendResult;
using delivery::StatusRule;
using delivery::StatusWord;
using Outcome = SendResult::Outcome;
using webhook::SendCause;
using webhook::SendEnding;
using webhook::SendReply;

SendReply answered(int status, std::string retry_after = "") {
  return {.ending = SendEnding::kAnswered,
          .status = status,
          .retry_after = std::move(retry_after),
          .body = "so it says"};
}

std::vector<StatusRule> rules(std::vector<std::pair<std::string, StatusWord>> written) {
  std::vector<StatusRule> all;
  for (const auto& [statuses, word] : written) {
    all.push_back(StatusRule::parse(statuses, word).value());
  }
  return all;
}

TEST(Answers, MeanWhatTheyUsuallyMean) {
  EXPECT_EQ(result_of(answered(200), {}).outcome, Outcome::kDelivered);
  EXPECT_EQ(result_of(answered(204), {}).outcome, Outcome::kDelivered);
  const SendResult refused = result_of(answered(422), {});
  EXPECT_EQ(refused.outcome, Outcome::kRejected);
  EXPECT_FALSE(refused.hopeless);
  for (const int status : {301, 408, 425, 429, 500, 503}) {
    EXPECT_EQ(result_of(answered(status), {}).outcome, Outcome::kTryLater) << status;
  }
  EXPECT_EQ(result_of(answered(503, "7"), {}).after, Duration{7'000});
}

TEST(Answers, GoneIsOfTheEndpoint) {
  const SendResult gone = result_of(answered(410), {});
  EXPECT_EQ(gone.outcome, Outcome::kGone);
  EXPECT_EQ(gone.reason, "HTTP 410 so it says");
  EXPECT_EQ(result_of(answered(410), rules({{"410", StatusWord::kReject}})).outcome,
            Outcome::kRejected);
  EXPECT_EQ(result_of(answered(410), rules({{"4xx", StatusWord::kRetry}})).outcome,
            Outcome::kTryLater);
}

TEST(Answers, MeanWhatIsDeclared) {
  const auto declared = rules({{"202", StatusWord::kRetry},
                               {"404", StatusWord::kRetry},
                               {"409", StatusWord::kDelivered},
                               {"4xx", StatusWord::kDeadLetter},
                               {"501", StatusWord::kDisable}});
  EXPECT_EQ(result_of(answered(409), declared).outcome, Outcome::kDelivered);
  EXPECT_EQ(result_of(answered(409), declared).reason, "");
  const SendResult dead = result_of(answered(422), declared);
  EXPECT_EQ(dead.outcome, Outcome::kRejected);
  EXPECT_TRUE(dead.hopeless);
  const SendResult later = result_of(answered(404, "3"), declared);
  EXPECT_EQ(later.outcome, Outcome::kTryLater);
  EXPECT_EQ(later.after, Duration{3'000});
  EXPECT_TRUE(later.answered);
  EXPECT_EQ(result_of(answered(202), declared).reason, "HTTP 202 so it says");
  EXPECT_EQ(result_of(answered(501), declared).outcome, Outcome::kGone);
  EXPECT_EQ(result_of(answered(503), declared).outcome, Outcome::kTryLater);
  EXPECT_EQ(result_of(answered(200), declared).outcome, Outcome::kDelivered);
}

// For the log of attempts. A success is told without what was said to it.
TEST(Answers, TellWhatIsKnownOfTheAttempt) {
  SendReply reply = answered(422);
  reply.truncated = true;
  reply.times.connected = std::chrono::microseconds{70};
  reply.times.total = std::chrono::microseconds{900};
  const SendResult refused = result_of(reply, {});
  EXPECT_EQ(refused.facts.status, 422);
  EXPECT_EQ(refused.facts.answer, "so it says");
  EXPECT_TRUE(refused.facts.answer_cut);
  EXPECT_EQ(refused.facts.times.connected, 70U);
  EXPECT_EQ(refused.facts.times.total, 900U);
  const auto declared = rules({{"422", StatusWord::kDelivered}});
  EXPECT_EQ(result_of(reply, declared).facts.status, 422);
  EXPECT_EQ(result_of(reply, declared).facts.answer, "");
}

// A head of which the body did not follow says nothing: the answer was not whole.
TEST(Answers, OnlyAWholeAnswerIsJudged) {
  SendReply reply = answered(410);
  reply.ending = SendEnding::kUnknown;
  reply.cause = SendCause::kBroken;
  EXPECT_EQ(result_of(reply, {}).outcome, Outcome::kUnknown);
  reply.ending = SendEnding::kNotSent;
  reply.cause = SendCause::kInvalid;
  EXPECT_TRUE(result_of(reply, {}).hopeless);
}

}  // namespace
}  // namespace hapax::workflows
