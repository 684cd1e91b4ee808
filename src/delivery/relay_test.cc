// The engine over an outbox in memory and a clock that the test moves.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/inline_relay.h"
#include "delivery/relay_rig_test.h"

namespace hapax::delivery {
namespace {

TEST_F(RelayEngine, SendsInOrderAndOnlyOnce) {
  for (const char* id : {"1", "2", "3"}) outbox.publish(0, id, "k");
  drain(engine);
  outbox.publish(0, "4", "k");
  drain(engine);
  EXPECT_EQ(sink.sent, (Ids{"1", "2", "3", "4"}));
  EXPECT_EQ(engine.counts().delivered, 4U);
}

// Y1: later records of a key wait behind one that is retried; other keys and none go on.
TEST_F(RelayEngine, ARefusedRecordHoldsUpItsKeyOnly) {
  sink.refused = {"a1"};
  outbox.publish(0, "a1", "a");
  outbox.publish(0, "b1", "b");
  outbox.publish(0, "a2", "a");
  outbox.publish(0, "x");
  drain(engine);
  outbox.publish(0, "a3", "a");
  outbox.publish(0, "b2", "b");
  drain(engine);
  EXPECT_EQ(sink.sent, (Ids{"b1", "x", "b2"}));

  sink.refused.clear();
  clock.advance(999);
  drain(engine);
  EXPECT_EQ(sink.sent.size(), 3U) << "its wait is not over";
  clock.advance(1);
  drain(engine);
  EXPECT_EQ(sink.sent, (Ids{"b1", "x", "b2", "a1", "a2", "a3"}));
}

// Y4: after the last attempt it is a dead letter with the reason, and the later ones go on.
TEST_F(RelayEngine, APoisonRecordBecomesADeadLetter) {
  sink.refused = {"a1"};
  outbox.publish(0, "a1", "a");
  outbox.publish(0, "a2", "a");
  for (int i = 0; i < 9; ++i) {
    drain(engine);
    EXPECT_TRUE(outbox.dead.empty()) << i;
    clock.advance(300'000);
  }
  drain(engine);
  ASSERT_EQ(outbox.dead.size(), 1U);
  EXPECT_EQ(outbox.dead.front(), (std::pair<std::string, std::string>{"a1", "status 422"}));
  EXPECT_EQ(sink.sent, Ids{"a2"});
}

// Y4: an unavailable sink costs no attempts, however long it lasts, and is not asked all the time.
TEST_F(RelayEngine, AnUnavailableSinkPausesWithoutCostingAttempts) {
  sink.down = true;
  int asked = 0;
  sink.before = [&](const Outgoing&) { ++asked; };
  outbox.publish(0, "1", "k");
  outbox.publish(0, "2", "k");
  for (int second = 0; second < 3'600; ++second) {
    while (go(engine).idle_for == Duration{0}) {
    }
    clock.advance(1'000);
  }
  EXPECT_LT(asked, 140) << "pauses grow up to half a minute";
  EXPECT_GT(asked, 100);
  EXPECT_TRUE(outbox.dead.empty());
  EXPECT_EQ(outbox.lanes[0].attempts, 0U);
  sink.down = false;
  clock.advance(30'000);
  drain(engine);
  EXPECT_EQ(sink.sent, (Ids{"1", "2"}));
}

// Y4: one record that makes the receiver fail does not look like a receiver that is away.
TEST_F(RelayEngine, ARecordThatMakesTheSinkFailIsRefusedWhileOthersPass) {
  sink.failing = {"bad"};
  outbox.publish(0, "bad", "a");
  outbox.publish(0, "a2", "a");
  outbox.publish(0, "b1", "b");
  outbox.publish(0, "b2", "b");
  drain(engine);
  EXPECT_EQ(sink.sent, (Ids{"b1", "b2"}));
  EXPECT_EQ(engine.counts().retried, 0U) << "it failed once";
  clock.advance(250);
  drain(engine);
  EXPECT_EQ(engine.counts().retried, 1U) << "and again, after others had passed";
  EXPECT_EQ(engine.counts().pauses, 0U);
}

// Y4: records of other keys that come later are tried at once, and then the failure is its own.
TEST_F(RelayEngine, ARecordThatFailsAloneHoldsUpNobodyElse) {
  sink.failing = {"bad"};
  outbox.publish(0, "bad", "a");
  outbox.publish(0, "a2", "a");
  for (int i = 0; i < 60; ++i) {
    drain(engine);
    clock.advance(1'000);
  }
  EXPECT_TRUE(sink.sent.empty());
  EXPECT_EQ(engine.counts().retried, 0U) << "there is nothing to compare it with";
  outbox.publish(0, "b1", "b");
  drain(engine);
  EXPECT_EQ(sink.sent, Ids{"b1"}) << "at once";
  clock.advance(30'000);
  drain(engine);
  EXPECT_EQ(engine.counts().retried, 1U);
  sink.failing.clear();
  clock.advance(1'000);
  drain(engine);
  EXPECT_EQ(sink.sent, (Ids{"b1", "bad", "a2"}));
}

// Y4: with nothing to compare, a record whose receiver answers is given up at last; one whose
// receiver does not is not.
TEST_F(RelayEngine, ARecordThatFailsAloneForVeryLongIsGivenUp) {
  sink.failing = {"bad"};
  outbox.publish(0, "bad", "a");
  outbox.publish(0, "a2", "a");
  const auto hours = [&](int count) {
    for (int i = 0; i < 3'600 * count; ++i) {
      drain(engine);
      clock.advance(1'000);
    }
  };
  hours(2);
  ASSERT_EQ(outbox.dead.size(), 1U);
  EXPECT_EQ(outbox.dead.front().first, "bad");
  EXPECT_EQ(sink.sent, Ids{"a2"});
  sink.down = true;
  outbox.publish(0, "a3", "a");
  hours(5);
  EXPECT_EQ(outbox.dead.size(), 1U);
}

// Z8: an outage is no reason to write every record of its key to the table of retries.
TEST_F(RelayEngine, AnOutageWithOneKeyLeavesTheBacklogWhereItIs) {
  for (int i = 0; i < 2'000; ++i) outbox.publish(0, std::to_string(i), "k");
  sink.down = true;
  for (int i = 0; i < 10; ++i) {
    drain(engine);
    clock.advance(1'000);
  }
  EXPECT_LT(outbox.lanes[0].waiting.size(), 1'000U);
  sink.down = false;
  for (int i = 0; i < 60; ++i) {
    drain(engine);
    clock.advance(1'000);
  }
  EXPECT_EQ(sink.sent.size(), 2'000U);
}

// Y4: a receiver that fails whatever it is given costs no attempts, and is asked often enough.
TEST_F(RelayEngine, ASinkThatFailsForAllGivesNothingUp) {
  sink.broken = true;
  int asked = 0;
  sink.before = [&](const Outgoing&) { ++asked; };
  for (int i = 0; i < 3'600; ++i) {
    if (i % 10 == 0) outbox.publish(0, std::to_string(i), "k" + std::to_string(i % 7));
    drain(engine);
    clock.advance(1'000);
  }
  EXPECT_TRUE(outbox.dead.empty());
  EXPECT_EQ(engine.counts().retried, 0U);
  EXPECT_LT(asked, 5 * 1'900);
  sink.broken = false;
  for (int i = 0; i < 60; ++i) {
    clock.advance(1'000);
    drain(engine);
  }
  EXPECT_EQ(sink.sent.size(), 360U);
}

// Y4: several records that make the receiver fail, side by side, do not look like one that is
// broken.
TEST_F(RelayEngine, SomeThatFailAreToldFromTheOthers) {
  for (int i = 0; i < 6; ++i) {
    sink.failing.insert("bad" + std::to_string(i));
    outbox.publish(0, "bad" + std::to_string(i), "b" + std::to_string(i));
  }
  for (int i = 0; i < 6; ++i) outbox.publish(0, std::to_string(i), "k" + std::to_string(i));
  for (int i = 0; i < 40; ++i) {
    drain(engine);
    clock.advance(250);
  }
  EXPECT_EQ(sink.sent.size(), 6U);
  EXPECT_GE(engine.counts().retried, 6U);
}

// It does not count behind one that waits, and is taken with it again and again.
TEST_F(RelayEngine, ARecordThatCannotBeSentIsToldOnce) {
  std::vector<std::string> told;
  InlineRelay relay(source, sink, clock, settings, [&](std::string_view text) {
    if (text.find("dead letter") != std::string_view::npos) told.emplace_back(text);
  });
  outbox.publish(0, "1", "a");
  outbox.publish(0, "bad", "b");
  outbox.lanes[0].rows.back().flaw = "no headers";
  outbox.publish(0, "2", "b");
  sink.down = true;
  for (int i = 0; i < 60; ++i) {
    drain(relay);
    clock.advance(1'000);
  }
  sink.down = false;
  for (int i = 0; i < 61; ++i) {
    drain(relay);
    clock.advance(1'000);
  }
  EXPECT_EQ(std::set<std::string>(sink.sent.begin(), sink.sent.end()),
            (std::set<std::string>{"1", "2"}));
  ASSERT_EQ(outbox.dead.size(), 1U);
  EXPECT_EQ(told, Ids{"record bad is a dead letter: no headers"});
  EXPECT_EQ(relay.counts().dead, 1U);
}

// Y5: a crash between sending and settling sends again, under the same ids.
TEST_F(RelayEngine, ACrashBeforeSettlingSendsAgain) {
  outbox.publish(0, "1", "k");
  outbox.publish(0, "2", "k");
  (void)go(engine);
  EXPECT_EQ(sink.sent, (Ids{"1", "2"}));
  MemorySource other(outbox, clock, "b");
  InlineRelay successor(other, sink, clock, settings);
  drain(successor);
  EXPECT_EQ(sink.sent.size(), 2U) << "the lease of the dead is not over";
  clock.advance(settings.lease.count());
  drain(successor);
  EXPECT_EQ(sink.sent, (Ids{"1", "2", "1", "2"}));
}

// Y2: stopped in the middle of a batch for longer than its lease, a relay sends nothing more of it,
// and nothing that it says about it counts.
TEST_F(RelayEngine, AfterAPauseNothingIsSentForWhatWasLost) {
  for (const char* id : {"1", "2", "3"}) outbox.publish(0, id, "k");
  MemorySource other(outbox, clock, "b");
  FakeSink other_sink;
  InlineRelay successor(other, other_sink, clock, settings);
  sink.before = [&](const Outgoing& record) {
    if (record.id != "2") return;
    clock.advance(settings.lease.count());
    drain(successor);
  };
  (void)go(engine);
  EXPECT_EQ(sink.sent, Ids{"1"});
  EXPECT_EQ(other_sink.sent, (Ids{"1", "2", "3"}));
  const std::size_t settled = outbox.lanes[0].settled;
  (void)go(engine);
  (void)go(engine);
  EXPECT_EQ(sink.sent, Ids{"1"});
  EXPECT_EQ(outbox.lanes[0].settled, settled);
  EXPECT_EQ(engine.lanes_lost(), 1U);
}

// Y2: the margin is kept too; the time a question takes is on the side of caution.
TEST_F(RelayEngine, NothingIsSentWithinTheMarginOfTheLease) {
  outbox.publish(0, "1", "k");
  outbox.publish(0, "2", "k");
  sink.before = [&](const Outgoing& record) {
    if (record.id == "1") clock.advance(settings.lease.count() - settings.margin.count());
  };
  (void)go(engine);
  EXPECT_TRUE(sink.sent.empty());
  sink.before = nullptr;
  drain(engine);
  clock.advance(50);
  drain(engine);
  EXPECT_EQ(sink.sent, (Ids{"1", "2"}));
}

// Y4: what a lease has no time for is sent under the next one. It costs neither a pause nor an
// attempt, and what was accepted is settled meanwhile.
TEST_F(RelayEngine, ASlowSinkIsNotUnavailable) {
  for (int i = 0; i < 20; ++i) outbox.publish(0, std::to_string(i), "k" + std::to_string(i % 3));
  sink.answers = [&](const Outgoing&, const Permit& permit) {
    const Duration waited = std::min(permit.left(), Duration{5'000});
    clock.advance(waited.count());
    return permit.good();
  };
  for (int i = 0; i < 200 && sink.sent.size() < 20; ++i) {
    drain(engine);
    clock.advance(250);
  }
  EXPECT_EQ(sink.sent.size(), 20U) << "each once";
  EXPECT_EQ(engine.counts().retried + engine.lanes_lost(), 0U);
}

// Y4: a record that is never answered is told from a slow sink, though the lease is all it gets.
TEST_F(RelayEngine, ARecordThatIsNeverAnsweredIsRefusedWhileOthersPass) {
  outbox.publish(0, "1", "a");
  outbox.publish(0, "bad", "b");
  outbox.publish(0, "2", "c");
  sink.answers = [&](const Outgoing& record, const Permit& permit) {
    if (record.id == "bad") clock.advance(permit.left().count());
    return record.id != "bad";
  };
  for (int i = 0; i < 4; ++i) {
    drain(engine);
    clock.advance(250);
  }
  EXPECT_EQ(sink.sent, (Ids{"1", "2"}));
  EXPECT_EQ(engine.counts().retried, 1U);
  EXPECT_EQ(engine.counts().pauses, 0U);
}

// Y4: a sink that answers nothing within a whole lease is as good as away.
TEST_F(RelayEngine, ASinkThatNeverAnswersPauses) {
  outbox.publish(0, "1", "a");
  outbox.publish(0, "2", "b");
  int asked = 0;
  sink.answers = [&](const Outgoing&, const Permit& permit) {
    ++asked;
    clock.advance(permit.left().count());
    return false;
  };
  bool paused = false;
  for (int i = 0; i < 8; ++i) paused = paused || go(engine).paused;
  EXPECT_TRUE(paused);
  EXPECT_LE(asked, 5) << "each twice: a lease that ends is not a failure";
  EXPECT_EQ(engine.counts().retried, 0U);
}

// Y3: what is said with an older fence changes nothing.
TEST_F(RelayEngine, ALostAnswerStartsOverUnderAHigherFence) {
  outbox.publish(0, "1", "k");
  source.failures = 1;
  EXPECT_FALSE(engine.step().has_value());
  EXPECT_TRUE(sink.sent.empty()) << "taken, but nobody was told";
  drain(engine);
  EXPECT_EQ(sink.sent, Ids{"1"});
  EXPECT_EQ(outbox.lanes[0].fence, 2);
}

// The database may have gone back, and nobody taken it.
TEST_F(RelayEngine, SaysNoMoreOfALostLaneThanIsKnown) {
  Ids told;
  InlineRelay telling(source, sink, clock, settings,
                      [&](std::string_view text) { told.emplace_back(text); });
  drain(telling);
  ++outbox.lanes[0].fence;
  outbox.lanes[0].until_ms = 0;
  outbox.publish(0, "1", "k");
  go(telling);
  EXPECT_EQ(told, Ids{"lane 0 is no longer held"});
}

// Y3: a lane that was lost is asked for soon, also if it is lost each time; but not all the time.
TEST_F(RelayEngine, ALostLaneIsAskedForSoon) {
  drain(engine);
  clock.advance(1'000);
  const auto lose = [&] {  // As when the database went back to before it was leased.
    ++outbox.lanes[0].fence;
    outbox.lanes[0].until_ms = 0;
  };
  lose();
  outbox.publish(0, "1", "k");
  EXPECT_EQ(go(engine).idle_for, Duration{0});
  drain(engine);
  EXPECT_EQ(sink.sent, Ids{"1"});
  EXPECT_EQ(engine.lanes_lost(), 1U);

  const std::int64_t begun = clock.steady_ms();
  const int leases = source.leases;
  for (int i = 0; i < 100; ++i) {
    lose();
    clock.advance(go(engine).idle_for.count());
  }
  EXPECT_GT(engine.lanes_lost(), 40U);
  EXPECT_LE(source.leases - leases, (clock.steady_ms() - begun) / settings.lease_again.count() + 1);
}

// Two relays come to share the lanes, and one that leaves gives its lanes back at once.
TEST(RelayEngines, ShareTheLanes) {
  sim::SimClock clock;
  MemoryOutbox outbox(16);
  FakeSink sink;
  const RelaySettings settings;
  MemorySource source_a(outbox, clock, "a");
  MemorySource source_b(outbox, clock, "b");
  InlineRelay a(source_a, sink, clock, settings);
  InlineRelay b(source_b, sink, clock, settings);
  const auto rounds = [&] {
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(a.step().has_value());
      ASSERT_TRUE(b.step().has_value());
      clock.advance(5'000);
    }
  };
  rounds();
  EXPECT_EQ(a.lanes(), 8U);
  EXPECT_EQ(b.lanes(), 8U);
  EXPECT_TRUE(a.stop().has_value());
  clock.advance(15'000);
  ASSERT_TRUE(b.step().has_value());
  EXPECT_EQ(b.lanes(), 16U);
}

// A graceful stop settles what was sent: the next relay sends nothing twice and need not wait.
TEST_F(RelayEngine, StopSettlesAndReleases) {
  outbox.publish(0, "1", "k");
  (void)go(engine);
  EXPECT_TRUE(engine.stop().has_value());
  MemorySource other(outbox, clock, "b");
  InlineRelay successor(other, sink, clock, settings);
  outbox.publish(0, "2", "k");
  drain(successor);
  EXPECT_EQ(sink.sent, (Ids{"1", "2"}));
}

}  // namespace
}  // namespace hapax::delivery
