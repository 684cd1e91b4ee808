// Y5: relays that die. A death counts against a record only if it was taken alone.
#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "delivery/relay_rig_test.h"

namespace hapax::delivery {
namespace {

struct Killed {};

class RelayDeaths : public RelayEngine {
 protected:
  // Whether this relay of many survived.
  bool live(MemoryOutbox& from, FakeSink& receiver) {
    MemorySource own(from, clock, "life " + std::to_string(++lives));
    InlineRelay relay(own, receiver, clock, settings);
    bool survived = true;
    try {
      drain(relay);
    } catch (const Killed&) {
      survived = false;
    }
    clock.advance(settings.lease.count());
    return survived;
  }
  static std::size_t distinct(const Ids& ids) { return std::set(ids.begin(), ids.end()).size(); }

  int lives = 0;
};

TEST_F(RelayDeaths, ARecordThatKillsTheRelayIsIsolated) {
  for (int i = 0; i < 40; ++i) outbox.publish(0, std::to_string(i), "k" + std::to_string(i % 3));
  sink.before = [](const Outgoing& record) {
    if (record.id == "17") throw Killed{};
  };
  while (lives < 100 && outbox.lanes[0].settled < 40) live(outbox, sink);
  ASSERT_EQ(outbox.dead.size(), 1U);
  EXPECT_EQ(outbox.dead.front().first, "17");
  EXPECT_LT(lives, 50);
  EXPECT_EQ(distinct(sink.sent), 39U);
}

// Alone among all lanes: what waits in others is sent before the suspect is, or after it is buried.
TEST_F(RelayDeaths, OnlyTheOneThatKillsIsADeadLetter) {
  for (std::size_t poisoned = 0; poisoned < 13; ++poisoned) {
    MemoryOutbox lanes(13);
    for (std::size_t i = 0; i < 13; ++i) {
      lanes.publish(i, i == poisoned ? "poison" : std::to_string(i), "k" + std::to_string(i));
    }
    FakeSink receiver;
    receiver.before = [](const Outgoing& record) {
      if (record.id == "poison") throw Killed{};
    };
    lives = 0;
    while (lives < 40 && !live(lanes, receiver)) {
    }
    EXPECT_EQ(distinct(receiver.sent), 12U) << poisoned;
    ASSERT_EQ(lanes.dead.size(), 1U) << poisoned;
    EXPECT_EQ(lanes.dead.front().first, "poison");
    // Five times among others, so often alone as a record has attempts, and then it is buried.
    EXPECT_EQ(lives, 5 + 10 + 1);
  }
}

// As long as others flow, too: they do not wait until the one that kills is buried.
TEST_F(RelayDeaths, OthersFlowWhileTheOneThatKillsIsHunted) {
  MemoryOutbox lanes(2);
  lanes.publish(0, "poison", "p");
  sink.before = [](const Outgoing& record) {
    if (record.id == "poison") throw Killed{};
  };
  while (lives < 6) live(lanes, sink);
  for (int i = 0; i < 5; ++i) {
    lanes.publish(1, std::to_string(i), "k");
    live(lanes, sink);
    EXPECT_EQ(distinct(sink.sent), static_cast<std::size_t>(i) + 1);
  }
  EXPECT_TRUE(lanes.dead.empty());
}

// Nobody sent anything that kills; an endpoint was slow, and somebody was impatient.
TEST_F(RelayDeaths, KillsFromOutsideMakeNoDeadLetters) {
  MemoryOutbox lanes(16);
  for (std::size_t i = 0; i < 20; ++i) lanes.publish(i % 16, std::to_string(i), std::to_string(i));
  sink.before = [&](const Outgoing&) {
    if (lives <= 12) throw Killed{};
  };
  while (lives < 20 && !live(lanes, sink)) {
  }
  EXPECT_EQ(lives, 13);
  EXPECT_TRUE(lanes.dead.empty());
  EXPECT_EQ(sink.sent.size(), 20U);
}

// What was refused and is due again is taken with the new records, whatever ends the relay.
TEST_F(RelayDeaths, RetriesDoNotHideTheOneThatKills) {
  outbox.publish(0, "poison", "p");
  sink.before = [](const Outgoing& record) {
    if (record.id == "poison") throw Killed{};
  };
  for (int i = 0; i < 60; ++i) {
    auto& waiting = outbox.lanes[0].waiting;
    const std::string id = "refused " + std::to_string(i);
    sink.refused.insert(id);
    waiting.push_back({{.place = ++outbox.places, .id = id, .type = "t", .key = id}, 0, 1});
    live(outbox, sink);
  }
  EXPECT_EQ(outbox.lanes[0].settled, 1U);
  const auto is_poison = [](const auto& letter) { return letter.first == "poison"; };
  EXPECT_EQ(std::count_if(outbox.dead.begin(), outbox.dead.end(), is_poison), 1);
}

// A refusal is an attempt, to be taken among others when somebody died is none.
TEST_F(RelayDeaths, OfWhatWaitsOnlyTheOneThatKillsIsADeadLetter) {
  for (int i = 0; i < 12; ++i) {
    outbox.publish(0, std::to_string(i), std::to_string(i));
    sink.refused.insert(std::to_string(i));
  }
  drain(engine);
  sink.refused.clear();
  sink.before = [](const Outgoing& record) {
    if (record.id == "7") throw Killed{};
  };
  clock.advance(settings.lease.count());
  while (lives < 40 && !live(outbox, sink)) {
  }
  EXPECT_EQ(distinct(sink.sent), 11U);
  ASSERT_EQ(outbox.dead.size(), 1U);
  EXPECT_EQ(outbox.dead.front().first, "7");
}

// Who starts a relay with fewer attempts than a record has had did not kill it.
TEST_F(RelayDeaths, FewerAttemptsAreNoDeaths) {
  outbox.publish(0, "1", "k");
  sink.refused = {"1"};
  drain(engine);
  EXPECT_TRUE(engine.stop().has_value());
  clock.advance(1'000);
  settings.attempts_max = 1;
  EXPECT_TRUE(live(outbox, sink));
  ASSERT_EQ(outbox.dead.size(), 1U);
  EXPECT_EQ(outbox.dead.front().second, "status 422");
}

}  // namespace
}  // namespace hapax::delivery
