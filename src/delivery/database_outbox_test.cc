#include "delivery/database_outbox.h"

#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "relay/memory_source_test.h"
#include "sim/clock.h"

namespace hapax::delivery {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = Settlement::Kind;

constexpr Duration kLease{10'000};

class DeliveryDatabaseOutbox : public testing::Test {
 protected:
  std::unique_ptr<DatabaseOutbox> source(const std::string& owner, LaneSettings lanes = {}) {
    return std::make_unique<DatabaseOutbox>(
        [this, owner]() -> Result<relay::OpenedOutbox> {
          ++opens;
          if (problem) return *problem;
          return relay::OpenedOutbox{std::make_unique<relay::MemorySource>(outbox, clock, owner),
                                     "uid-1"};
        },
        clock, DatabaseOutboxSettings{.lanes = lanes, .owner = owner},
        [this](const relay::OpenedOutbox& opened) {
          uids.push_back(opened.uid);
          return hooks;
        });
  }
  Result<Hand> take(DatabaseOutbox& from, std::vector<Settlement> settled = {},
                    std::uint32_t room = 100) {
    return from.take({.settled = settled, .room = room, .lease = kLease});
  }
  static std::vector<std::string> ids(const Result<Hand>& hand) {
    std::vector<std::string> all;
    for (const Handout& each : hand.value().records) all.push_back(each.record.id);
    return all;
  }

  sim::SimClock clock;
  relay::MemoryOutbox outbox{2};
  LaneHooks hooks;
  std::optional<Error> problem;
  int opens = 0;
  std::vector<std::string> uids;
};

TEST_F(DeliveryDatabaseOutbox, OpensWhenTheDatabaseIsThere) {
  outbox.publish(0, "1");
  const auto from = source("workflow w@s#1");
  problem = Error{Errc::kUnavailable, "nobody listens"};
  EXPECT_EQ(take(*from).error().code, Errc::kUnavailable);
  EXPECT_TRUE(from->give_back({}));
  problem.reset();
  EXPECT_THAT(ids(take(*from)), ElementsAre("1"));
  EXPECT_EQ(opens, 2);
  EXPECT_THAT(uids, ElementsAre("uid-1"));
}

// Records of one outbox would reach one of two endpoints.
TEST_F(DeliveryDatabaseOutbox, LeavesTheOutboxToASenderOfAnotherLabel) {
  outbox.publish(0, "1");
  const auto relay = source("host/1#k");
  ASSERT_THAT(ids(take(*relay)), ElementsAre("1"));
  const auto from = source("workflow w@s#1");
  const auto refused = take(*from);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kLocked);
  EXPECT_THAT(refused.error().detail, HasSubstr("'host/1' sends from this outbox"));
  clock.advance(kLease.count() + 1);
  EXPECT_THAT(ids(take(*from)), ElementsAre("1")) << "that one is dead";
}

TEST_F(DeliveryDatabaseOutbox, SharesTheLanesWithItsOwnLabel) {
  const auto one = source("workflow w@s#1");
  const auto other = source("workflow w@s#2");
  ASSERT_TRUE(take(*one));
  ASSERT_TRUE(take(*other));
  clock.advance(kLease.count() / 2);
  ASSERT_TRUE(take(*one));
  ASSERT_TRUE(take(*other));
  EXPECT_EQ(outbox.lanes[0].owner, "workflow w@s#1");
  EXPECT_EQ(outbox.lanes[1].owner, "workflow w@s#2");
}

// Two that began at the same moment: the first one that notices gives way.
TEST_F(DeliveryDatabaseOutbox, GivesWayToOneThatCameBesideIt) {
  const auto from = source("workflow w@s#1");
  ASSERT_TRUE(take(*from));
  relay::MemorySource late(outbox, clock, "host/1#k");
  Status given_way{Ok{}};
  for (int i = 0; i < 20 && given_way; ++i) {
    ASSERT_TRUE(late.lease({}, kLease));
    if (const auto hand = take(*from); !hand) given_way = hand.error();
    clock.advance(2'000);
  }
  ASSERT_FALSE(given_way);
  EXPECT_EQ(given_way.error().code, Errc::kLocked);
  for (const auto& lane : outbox.lanes) {
    EXPECT_TRUE(lane.owner == "host/1#k" || lane.until_ms == 0) << lane.owner;
  }
}

TEST_F(DeliveryDatabaseOutbox, GivesBackItsLanesAndOpensAgain) {
  outbox.publish(0, "1");
  const auto from = source("workflow w@s#1");
  ASSERT_THAT(ids(take(*from)), ElementsAre("1"));
  ASSERT_TRUE(from->give_back({}));
  EXPECT_EQ(outbox.lanes[0].until_ms, 0);
  EXPECT_THAT(ids(take(*from)), ElementsAre("1"));
  EXPECT_EQ(opens, 2);
}

TEST_F(DeliveryDatabaseOutbox, NamesRecordsAndPassesOverOthers) {
  hooks.dress = [](Outgoing& record) { record.id = "key of " + record.id; };
  hooks.wanted = [](const Outgoing& record) { return record.id != "2"; };
  for (const char* id : {"1", "2", "3"}) outbox.publish(0, id, "k");
  const auto from = source("workflow w@s#1");
  const auto hand = take(*from);
  EXPECT_THAT(ids(hand), ElementsAre("key of 1", "key of 3"));
  std::vector<Settlement> settled;
  for (const Handout& each : hand->records) settled.push_back({each.number, Kind::kDelivered});
  ASSERT_TRUE(take(*from, settled));
  EXPECT_EQ(outbox.lanes[0].settled, 3U);
}

TEST_F(DeliveryDatabaseOutbox, WhatNobodyWantsIsSettledAtOnce) {
  hooks.wanted = [](const Outgoing&) { return false; };
  for (const char* id : {"1", "2", "3"}) outbox.publish(0, id);
  const auto from = source("workflow w@s#1");
  const auto hand = take(*from);
  EXPECT_THAT(ids(hand), IsEmpty());
  EXPECT_TRUE(hand->more);
  ASSERT_TRUE(take(*from));
  EXPECT_EQ(outbox.lanes[0].settled, 3U);
}

TEST_F(DeliveryDatabaseOutbox, NoAttemptBeginsLaterThanGiveUpAfter) {
  outbox.publish(0, "1");
  const auto from = source("workflow w@s#1", {.give_up_after = Duration{60'000}});
  std::vector<Settlement> settled;
  const std::int64_t began = clock.steady_ms();
  int attempts = 0;
  for (; attempts < 100 && outbox.dead.empty(); ++attempts) {
    auto hand = take(*from, settled);
    settled.clear();
    ASSERT_TRUE(hand);
    from->wait(Duration{0});
    clock.advance(1'000);
    for (const Handout& each : hand->records) {
      settled.push_back({each.number, Kind::kRetry, Duration{20'000}, "HTTP 500"});
    }
  }
  ASSERT_EQ(outbox.dead.size(), 1U);
  EXPECT_THAT(outbox.dead.front().second, HasSubstr("given up after"));
  EXPECT_THAT(outbox.dead.front().second, HasSubstr("ms: HTTP 500"));
  EXPECT_LT(clock.steady_ms() - began, 70'000);
  EXPECT_GT(clock.steady_ms() - began, 40'000) << "three attempts fit into the time";
}

// Whoever stops a workflow waits for its thread.
TEST_F(DeliveryDatabaseOutbox, ANudgeEndsTheWaitForADatabase) {
  const auto from = source("workflow w@s#1");
  problem = Error{Errc::kUnavailable, "nobody listens"};
  ASSERT_FALSE(take(*from));
  auto waits = std::async(std::launch::async, [&] { from->wait(Duration{600'000}); });
  from->hurry();
  from->nudge();
  EXPECT_EQ(waits.wait_for(std::chrono::seconds{60}), std::future_status::ready);
}

}  // namespace
}  // namespace hapax::delivery
