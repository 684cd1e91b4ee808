// Log time over starts, stops, idle times and clocks that are set: docs/internals/time.md.
#include <atomic>
#include <optional>
#include <semaphore>
#include <string>

#include <gtest/gtest.h>

#include "engine/embedded_store.h"
#include "engine/rig_test.h"
#include "journal/marks.h"

namespace hapax::engine {
namespace {

class TimeTest : public EngineRig {
 protected:
  static constexpr std::int64_t kSecond = 1'000;
  static constexpr std::int64_t kHour = 3'600 * kSecond;
  static constexpr std::int64_t kDay = 24 * kHour;

  std::string append(std::string_view id) {
    return std::string(
        word_of(commit({Append{.stream = "s", .payload = "p", .id = id}}).verdict()));
  }
  Held get(std::string_view name) { return std::get<Held>(commit({Get{name}}).verdict()); }
  Held set(std::string_view name, const Expiry& expiry) {
    return std::get<Held>(
        commit({Set{.name = name, .value = "v", .mode = SetMode::kAlways, .expiry = expiry}})
            .verdict());
  }
  [[nodiscard]] std::uint64_t lsn() { return machine().next_lsn().value; }
  static Expiry after(std::int64_t ms) { return {Expiry::Kind::kAfter, {}, Duration{ms}}; }
  static Expiry at(std::int64_t wall_ms) { return {Expiry::Kind::kAt, time_from_ms(wall_ms), {}}; }
};

// W7: a start moves log time no more than a running process would.
TEST_F(TimeTest, AStartWithTheWallClockAheadForgetsNothing) {
  commit({CreateStream{"s", {.window = Window{std::chrono::seconds{10}}}}});
  EXPECT_EQ(append("1"), "fresh");
  for (const std::int64_t jump : {2 * kHour, 3 * kDay, -5 * kHour}) {
    clock_.advance(200);
    kill();
    clock_.jump(jump);
    open();
    EXPECT_EQ(append("1"), "duplicate") << jump;
  }
  clock_.advance(10 * kSecond);
  EXPECT_EQ(append("1"), "fresh");
}

// W7: a stop is not a jump, however long: it is made up, and a person may end that.
TEST_F(TimeTest, AStopIsNotAJump) {
  live_a_little(1);
  const Time last = machine().decided_at();
  kill();
  clock_.advance(1'000 * kDay);
  open();
  const Statistics stats = machine().statistics();
  EXPECT_FALSE(stats.clock_jump_pending);
  EXPECT_EQ(stats.clock_lag, Duration{1'000 * kDay} - core::kStepMax);
  EXPECT_EQ(machine().decided_at(), last + core::kStepMax);
  clock_.advance(kDay);
  EXPECT_EQ(machine().read_clock(), last + core::kStepMax + Duration{kDay + kDay / 10});
  kill();
  EngineOptions accepting = tiny();
  accepting.clock_jump = LogClock::Jump::kAccept;
  engine_ = std::move(try_open(accepting)).value();
  EXPECT_EQ(to_ms(machine().decided_at()), clock_.wall_ms());
  EXPECT_EQ(machine().statistics().clock_lag, Duration{0});
}

// W7: what is empty has nothing to forget.
TEST_F(TimeTest, AnEmptyStoreStartsAtTheWallClock) {
  engine_->note_time();
  EXPECT_TRUE(engine_->writer().write_mark(journal::MarkKind::kRunning).ok());
  for (const std::int64_t jump : {3 * kDay, -kHour}) {
    kill();
    clock_.jump(jump);
    open();
    EXPECT_GE(to_ms(machine().decided_at()), clock_.wall_ms());
  }
  commit({CreateStream{"s", {}}});
}

// W5: whatever was told to be over stays over, also if nothing was written since and the clock is
// set back.
TEST_F(TimeTest, WhatWasToldToBeOverStaysOver) {
  set("k", after(5 * kSecond));
  clock_.advance(4 * kSecond);
  EXPECT_TRUE(get("k").applied);
  clock_.advance(kSecond);
  const std::uint64_t before = lsn();
  EXPECT_FALSE(get("k").applied);
  EXPECT_EQ(lsn(), before + 1) << "log time is written down first";
  EXPECT_FALSE(get("k").applied);
  EXPECT_EQ(lsn(), before + 1) << "once";
  kill();
  clock_.jump(-kHour);
  open();
  EXPECT_FALSE(get("k").applied);
}

// W5: what a start goes on with covers what was answered shortly after something was durable.
TEST_F(TimeTest, AStartIsNotBehindAnAnswer) {
  set("k", after(kSecond));
  clock_.advance(1'900);
  const std::uint64_t before = lsn();
  EXPECT_FALSE(get("k").applied);
  EXPECT_EQ(lsn(), before) << "nothing needs to be written";
  kill();
  open();
  EXPECT_FALSE(get("k").applied);
}

// W5: those who are told what is there, or nothing of ends, wait for no disk.
TEST_F(TimeTest, OnlyWhoIsToldOfAnEndWaitsForLogTime) {
  commit({CreateStream{"s", {}}});
  EXPECT_EQ(append("1"), "fresh");
  set("k", {});
  clock_.advance(kHour);
  const std::uint64_t before = lsn();
  int seen = 0;
  const auto look = [&](const core::State&, Time) { return [&seen] { ++seen; }; };
  machine().look(look);
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(append("1"), "duplicate");
  EXPECT_TRUE(get("k").applied);
  EXPECT_EQ(lsn(), before);
  machine().look(look, {}, Machine::Sees::kEnds);
  EXPECT_EQ(seen, 1);
  ASSERT_TRUE(machine().has_facts());
  EXPECT_TRUE(write().ok());
  EXPECT_EQ(seen, 2);
}

// W5: on a full disk nobody can write log time down, and everybody who looks is answered.
TEST_F(TimeTest, AFullDiskAnswersWhoLooks) {
  set("k", after(kSecond));
  clock_.advance(kHour);
  fill_disk();
  Call& call = submit({Get{"k"}});
  EXPECT_FALSE(write().ok());
  ASSERT_TRUE(call.answered());
  EXPECT_FALSE(std::get<Held>(call.verdict()).applied);
  clock_.advance(kHour);
  EXPECT_FALSE(get("k").applied);
  free_disk();
  set("other", {});
  clock_.advance(kHour);
  const std::uint64_t before = lsn();
  EXPECT_FALSE(get("k").applied);
  EXPECT_EQ(lsn(), before + 1) << "as soon as it can be written down again, it is";
}

// W5: a mark takes log time along, so an idle day is not lost.
TEST_F(TimeTest, AnIdleDayIsNotLost) {
  commit({CreateStream{"s", {}}});
  clock_.advance(kDay);
  engine_->note_time();
  EXPECT_TRUE(engine_->writer().write_mark(journal::MarkKind::kRunning).ok());
  clock_.advance(50 * kSecond);
  kill();
  open();
  EXPECT_EQ(machine().statistics().clock_lag, Duration{50 * kSecond});
  EXPECT_EQ(append("1"), "fresh");
}

// W5: the store's own threads do that, and an orderly end does.
TEST_F(TimeTest, TheStoreMarksLogTimeWhileItIsIdle) {
  commit({CreateStream{"s", {}}});
  kill();
  EngineOptions often = tiny();
  often.mark_every = std::chrono::milliseconds{1};
  engine_ = std::move(try_open(often)).value();
  clock_.advance(kDay);
  std::counting_semaphore<> marked{0};
  std::optional<EmbeddedStore> store;
  disk_.watch([&](std::string_view call) {
    if (call.find("sync MARKS") == std::string_view::npos) return;
    const auto bytes = disk_.cached("MARKS");
    for (const std::size_t block : {std::size_t{0}, std::size_t{journal::kMarkBlockBytes}}) {
      const auto mark = journal::decode_mark(std::string_view(*bytes).substr(block, 64));
      if (!mark) continue;
      if (to_ms(mark->log_time + core::kStepMax) >= clock_.wall_ms()) marked.release();
    }
  });
  store.emplace(
      nullptr, std::move(engine_), [](const Error&) { std::abort(); }, [](const std::string&) {});
  marked.acquire();
  store.reset();
  disk_.watch({});
  disk_.restart();
  open();
  EXPECT_GE(to_ms(machine().decided_at()), clock_.wall_ms());
}

// W6: neither early nor never, although log time is hours behind.
TEST_F(TimeTest, AbsoluteTimesAreThoseOfTheWallClock) {
  live_a_little(1);
  kill();
  clock_.advance(5 * kHour);
  open();
  const std::int64_t end = clock_.wall_ms() + 60 * kSecond;
  Held held = set("k", at(end));
  Answer told{true, false, {}, {held}};
  tell_wall_times(told, machine().moment());
  EXPECT_EQ(to_ms(std::get<Held>(told.verdicts[0]).expires_at), end);
  EXPECT_EQ(std::get<Held>(told.verdicts[0]).expires_in, Duration{60 * kSecond});
  for (int i = 0; i < 59; ++i) {
    clock_.advance(kSecond);
    ASSERT_TRUE(get("k").applied) << i;
  }
  clock_.advance(kSecond + 2);
  EXPECT_FALSE(get("k").applied);
  set("k", at(clock_.wall_ms()));
  EXPECT_FALSE(get("k").applied) << "over already";
  set("k", after(60 * kSecond));
  EXPECT_TRUE(std::get<Held>(commit({Expire{"k", at(clock_.wall_ms() - 1)}}).verdict()).applied);
  EXPECT_FALSE(get("k").applied);
}

// W6: the same commit gives the same answer, wherever the clocks are by then.
TEST_F(TimeTest, ARepeatedCommitIsToldTheSameEnd) {
  live_a_little(1);
  kill();
  clock_.advance(5 * kHour);
  open();
  const std::vector<Op> ops{
      Set{.name = "k", .value = "v", .mode = SetMode::kAlways, .expiry = after(kHour)}};
  const auto told = [&] {
    Answer answer = *commit(ops, "once").finished->answer;
    tell_wall_times(answer, machine().moment());
    return answer;
  };
  const Answer first = told();
  EXPECT_EQ(std::get<Held>(first.verdicts[0]).expires_in, Duration{kHour - kHour / 11});
  clock_.advance(600 * kSecond);
  clock_.jump(-kHour);
  const Answer again = told();
  EXPECT_TRUE(again.repeated);
  EXPECT_EQ(std::get<Held>(again.verdicts[0]).expires_at,
            std::get<Held>(first.verdicts[0]).expires_at);
}

// W6: a retry whose first try is older than what is remembered is not taken for new, though log
// time, hours behind, has not got there.
TEST_F(TimeTest, AFirstTryIsDatedByTheWallClock) {
  commit({CreateStream{"s", {.window = Window{std::chrono::seconds{100}}}}});
  EXPECT_EQ(append("1"), "fresh");
  kill();
  clock_.advance(5 * kHour);
  open();
  clock_.advance(200 * kSecond);
  const Append retry{.stream = "s",
                     .payload = "p",
                     .id = "1",
                     .first_sent = time_from_ms(clock_.wall_ms() - 150 * kSecond)};
  EXPECT_EQ(word_of(commit({retry}).verdict()), "too_old_to_know");
}

}  // namespace
}  // namespace hapax::engine
