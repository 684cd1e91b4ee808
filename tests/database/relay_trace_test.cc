// Where is an event? What the view outbox_trace answers, over both databases.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "relay_outboxes.h"
#include "relay_rig.h"

namespace hapax::testing_relay {
namespace {

class TraceOfAnEvent : public testing::TestWithParam<const char*> {
 protected:
  std::vector<relay::TracedEvent> trace(const std::string& id) {
    const auto found = outbox->open("looker")->trace(id);
    EXPECT_TRUE(found.has_value()) << found.error().text();
    return found ? *found : std::vector<relay::TracedEvent>{};
  }
  // Of the latest of that id.
  std::string state(const std::string& id) {
    const auto found = trace(id);
    return found.empty() ? "not there" : found.back().state;
  }

  const std::unique_ptr<OutboxOfADatabase> outbox = outbox_of(GetParam());
  Receiver receiver;
};

TEST_P(TraceOfAnEvent, FollowsItThroughItsLife) {
  EXPECT_EQ(state("a1"), "not there");
  outbox->publish("a1", "a");
  outbox->publish("a2", "a");
  outbox->publish("b", "b");
  EXPECT_EQ(state("a1"), "waiting");
  EXPECT_GT(trace("a1").front().created_ms, 1'700'000'000'000);
  receiver.refused = {"a1"};
  Relay relay(outbox->open("r"), receiver, {.attempts_max = 2});
  relay.drain();
  EXPECT_EQ(state("b"), "sent");
  EXPECT_EQ(state("a2"), "held");
  EXPECT_EQ(state("a1"), "retry");
  EXPECT_EQ(trace("a1").front().attempts, 1U);
  EXPECT_EQ(trace("a1").front().last_error.substr(0, 11), "no \"thanks\"");
  EXPECT_EQ(trace("a1").front().relay, "r");
  EXPECT_TRUE(trace("a1").front().next_ms);

  outbox->let_time_pass();
  Relay last(outbox->open("s"), receiver, {.attempts_max = 2});
  last.drain();
  EXPECT_EQ(state("a1"), "dead letter");
  EXPECT_TRUE(trace("a1").front().died_ms);
  EXPECT_EQ(trace("a1").front().attempts, 2U);
  EXPECT_EQ(state("a2"), "sent");

  EXPECT_EQ(last.source->redrive({})->count, 1U);
  ASSERT_EQ(trace("a1").size(), 2U);
  EXPECT_EQ(trace("a1").front().state, "published again");
  EXPECT_EQ(state("a1"), "waiting");
}

// By a relay that lives; what a dead one had taken waits.
TEST_P(TraceOfAnEvent, TellsThatItIsTaken) {
  outbox->publish("a", "a");
  const auto source = outbox->open("r");
  const auto leases = source->lease({}, Duration{60'000});
  std::vector<relay::LaneTurn> turns;
  for (const relay::Lease& lease : leases->held) turns.push_back({lease, {}, 10});
  ASSERT_EQ(source->next(turns)->batches.size(), 1U);
  EXPECT_EQ(state("a"), "taken");
  EXPECT_EQ(trace("a").front().relay, "r");
  outbox->let_time_pass();
  EXPECT_EQ(state("a"), "waiting");
  EXPECT_EQ(trace("a").front().relay, "");
}

INSTANTIATE_TEST_SUITE_P(Over, TraceOfAnEvent, testing::Values("Postgres", "Sqlite"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace hapax::testing_relay
