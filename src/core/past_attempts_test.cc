// The history of a record's attempts: what is kept of it, and what it costs.
#include "core/past_attempts.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "core/consumers_harness.h"

namespace hapax::core {
namespace {

class History : public testing::Test {
 protected:
  Receipt take() {
    const Delivery delivery = store.receive("c").at(0);
    return {delivery.record.sequence, delivery.token};
  }
  void nack(Receipt held, std::string_view reason) {
    EXPECT_EQ(store.nack("c", held, Duration{0}, reason), Verdict{Done{}});
  }

  ConsumersHarness store;
};

// C7: what failed is kept within limits, the latest attempts first of all, and weighed.
TEST_F(History, TheHistoryOfADeadLetterIsBounded) {
  ASSERT_EQ(store.create("c", {.attempts_max = 40}), Verdict{Done{}});
  store.append();
  const std::uint64_t idle = store.state.text_bytes;
  const std::string small(10, 's');
  for (std::uint32_t i = 1; i < 40; ++i) {
    const Receipt held = take();
    nack(held, i < 30 ? small : small + "late");
    const PastAttempts& past = *store.consumer("c").pending.at(Sequence{1}).past;
    EXPECT_EQ(past.size(), std::min<std::size_t>(i, limits::kHistoryAttemptsMax));
    EXPECT_EQ(past.back().attempt, i);
    EXPECT_GT(store.state.text_bytes, idle + past.size() * sizeof(PastAttempt));
  }
  const Receipt last = take();
  nack(last, "the end");
  const Lineage lineage = *store.record(Sequence{1}, "orders.dead").lineage;
  EXPECT_EQ(lineage.attempts, 40U);
  ASSERT_EQ(lineage.history.size(), limits::kHistoryAttemptsMax);
  EXPECT_EQ(lineage.history.front().attempt, 25U);
  EXPECT_EQ(lineage.history.front().reason, small);
  EXPECT_EQ(lineage.history.back().reason, "the end");
  EXPECT_EQ(store.consumer("c").past_bytes, 0U);
}

TEST_F(History, LongReasonsLeaveRoomForFewerAttempts) {
  ASSERT_EQ(store.create("c", {.attempts_max = 20}), Verdict{Done{}});
  store.append();
  const std::string reason(limits::kReasonBytesMax, 'r');
  for (int i = 0; i < 20; ++i) {
    const Receipt held = take();
    nack(held, reason);
  }
  const Lineage lineage = *store.record(Sequence{1}, "orders.dead").lineage;
  EXPECT_EQ(lineage.history.size(), 7U);
  EXPECT_EQ(lineage.history.back().attempt, 20U);
}

TEST_F(History, ARecordThatNeverFailedHasNoHistory) {
  store.append();
  const Receipt held = take();
  EXPECT_EQ(store.consumer("c").pending.at(Sequence{1}).past, nullptr);
  EXPECT_EQ(store.ack("c", held), Verdict{Done{}});
  EXPECT_EQ(store.consumer("c").past_bytes, 0U);
}

}  // namespace
}  // namespace hapax::core
