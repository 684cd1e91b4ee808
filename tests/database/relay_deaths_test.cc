// Y5: relays that die, over both databases. What a record may have done is written down before
// anybody sends it.
#include <memory>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "relay_outboxes.h"
#include "relay_rig.h"

namespace hapax::testing_relay {
namespace {

class RelaysThatDie : public testing::TestWithParam<const char*> {
 protected:
  // Whether this relay of many survived.
  bool live(const std::string& deadly) {
    Killer killer(receiver, deadly);
    Relay relay(outbox->open("life " + std::to_string(++lives)), killer, {.attempts_max = 3});
    bool survived = true;
    try {
      relay.drain();
    } catch (const Killer::Killed&) {
      survived = false;
    }
    outbox->let_time_pass();
    return survived;
  }
  Ids dead() {
    Ids ids;
    const auto letters = outbox->open("looker")->dead_letters(100);
    for (const relay::DeadLetter& letter : *letters) ids.push_back(letter.id);
    return ids;
  }
  std::set<std::string> sent() const { return {receiver.sent.begin(), receiver.sent.end()}; }

  const std::unique_ptr<OutboxOfADatabase> outbox = outbox_of(GetParam());
  Receiver receiver;
  int lives = 0;
};

TEST_P(RelaysThatDie, LeaveOnlyTheRecordThatKilledThemAsADeadLetter) {
  for (int i = 0; i < 13; ++i) {
    const std::string id = i == 6 ? "poison" : std::to_string(i);
    outbox->publish(id, "k" + id);
  }
  while (lives < 60 && !live("poison")) {
  }
  EXPECT_EQ(dead(), Ids{"poison"});
  EXPECT_EQ(sent().size(), 12U);
  EXPECT_LE(lives, 20);
}

TEST_P(RelaysThatDie, LeaveOnlyTheRecordThatKilledThemOfWhatWaitedForAnotherAttempt) {
  for (int i = 0; i < 13; ++i) {
    const std::string id = i == 6 ? "poison" : std::to_string(i);
    outbox->publish(id, "k" + id);
    receiver.refused.insert(id);
  }
  EXPECT_TRUE(live("nothing"));
  receiver.refused.clear();
  while (lives < 60 && !live("poison")) {
  }
  EXPECT_EQ(dead(), Ids{"poison"});
  EXPECT_EQ(sent().size(), 12U);
}

// Somebody kills them, whatever they send first: most of that was among others.
TEST_P(RelaysThatDie, FromOutsideLeaveNoDeadLetters) {
  for (int i = 0; i < 20; ++i) outbox->publish(std::to_string(i), "k" + std::to_string(i));
  while (lives < 7) EXPECT_FALSE(live(Killer::kAny));
  EXPECT_EQ(dead(), Ids{});
  EXPECT_TRUE(live("nothing"));
  EXPECT_EQ(sent().size(), 20U);
  EXPECT_EQ(receiver.sent.size(), 20U);
}

// What was refused is due in each life, and is settled alone after each death.
TEST_P(RelaysThatDie, FindTheRecordThatKilledThemAmongRetries) {
  outbox->publish("poison", "k");
  for (int i = 0; i < 40 && dead() != Ids{"poison"}; ++i) {
    const std::string id = "r" + std::to_string(i);
    receiver.refused = {id};
    outbox->publish(id, "k" + id);
    live("poison");
  }
  EXPECT_THAT(dead(), testing::Contains("poison"));
}

// Somebody deleted it while relays died over it.
TEST_P(RelaysThatDie, ASuspectThatIsGoneHoldsNobodyUp) {
  outbox->publish("poison", "k");
  while (lives < 6) EXPECT_FALSE(live("poison"));
  outbox->remove("poison");
  EXPECT_TRUE(live("poison"));
  outbox->publish("next", "k");
  EXPECT_TRUE(live("poison"));
  EXPECT_EQ(receiver.sent, Ids{"next"});
  EXPECT_EQ(dead(), Ids{});
}

INSTANTIATE_TEST_SUITE_P(Over, RelaysThatDie, testing::Values("Postgres", "Sqlite"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace hapax::testing_relay
