// Processes of a shared store that were away while others went on, or are slower than they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shared/process_test.h"

namespace hapax::shared {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kAwayOften = 4'096;  // bytes of log between snapshots

class SharedAwayTest : public testing::Test {
 protected:
  SharedAwayTest() { EXPECT_TRUE(keeper_.commit({CreateStream{"s", {}}}).ok()); }

  bool has_segment(std::uint32_t number) {
    const std::lock_guard lock(place_.mutex);
    return std::any_of(place_.log.begin(), place_.log.end(),
                       [&](const auto& one) { return one.first.segment == number; });
  }
  std::uint32_t last_segment() {
    const std::lock_guard lock(place_.mutex);
    return place_.log.rbegin()->first.segment;
  }
  // Appends and trims until the segment is gone.
  void drop(std::uint32_t segment) {
    while (last_segment() <= segment || has_segment(segment)) {
      const Verdict put = keeper_.append("k" + std::to_string(count_++), std::string(700, 'x'));
      const Sequence last = std::get<Appended>(put).sequence;
      EXPECT_TRUE(keeper_.commit({Trim{"s", last}}).ok());
      std::this_thread::yield();
    }
  }
  // Whoever meets it first is told to try again.
  static void ask(Process& process) {
    while (!process.store->describe("s")) std::this_thread::yield();
  }
  static std::string said_until_heard(Process& process, const Op& op) {
    for (;;) {
      const Verdict told = process.one(op);
      const auto* refused = std::get_if<Refused>(&told);
      if (refused == nullptr || refused->error.code != Errc::kUnavailable) return word(told);
    }
  }

  // Others write ids that are soon over, many rounds of them; this one follows, and writes or not.
  void follow_many(bool writes) {
    constexpr std::size_t kIds = 4'096;
    constexpr int kRounds = 12;
    const StreamSettings settings{.window = Window{std::chrono::seconds{1}}};
    ASSERT_TRUE(keeper_.commit({CreateStream{"short", settings}}).ok());
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::string> ids;
      std::vector<Op> ops;
      for (std::size_t i = 0; i < kIds; ++i) ids.push_back(std::to_string(count_++));
      for (const std::string& id : ids) ops.push_back(Append{.stream = "short", .id = id});
      ASSERT_TRUE(keeper_.commit(ops).ok());
      keeper_.clock.jump(1'500);  // Followed at once.
      const Verdict told =
          writes ? away_.one(Append{.stream = "short", .id = "w"}) : Verdict{Done{}};
      ASSERT_FALSE(std::holds_alternative<Refused>(told));
      ask(away_);
    }
    EXPECT_LT(away_.store->statistics()->ids, 4 * kIds);
  }

  MemoryPlace place_;
  Process keeper_{place_, kAwayOften};
  Process away_{place_, std::uint64_t{1} << 30, 0, std::chrono::milliseconds{100}, kNeverKeeps};
  int count_ = 0;
};

// E9: the batch that it stands on is kept; what followed it is not. That is no damage.
TEST_F(SharedAwayTest, WhoMissedASegmentThatIsGoneReadsEverythingAnew) {
  ASSERT_TRUE(keeper_.commit({CreateStream{"kept", {}}}).ok());
  drop(last_segment());
  const std::string large(3'000, 'l');  // So that its segment is not worth emptying.
  EXPECT_EQ(word(keeper_.one(Append{.stream = "kept", .payload = large, .id = "l"})), "fresh");
  const std::uint32_t stands_on = last_segment();
  ask(away_);
  const std::string first = "k" + std::to_string(count_);
  drop(stands_on + 1);
  ASSERT_TRUE(has_segment(stands_on));
  const std::string payload(700, 'x');
  EXPECT_EQ(said_until_heard(away_, Append{.stream = "s", .payload = payload, .id = first}),
            "duplicate");
  EXPECT_FALSE(away_.store->statistics()->damaged);
  EXPECT_EQ(away_.store->describe("s")->last, keeper_.store->describe("s")->last);
  const std::lock_guard lock(away_.mutex);
  for (const std::string& line : away_.lines) EXPECT_THAT(line, Not(HasSubstr("are lost")));
}

// E8: from an empty log on, what others wrote and removed lies before the end.
TEST_F(SharedAwayTest, WhoKnewAnEmptyLogAppendsNothingIntoAPlaceThatIsFreeAgain) {
  MemoryPlace place;
  Process keeper(place, kAwayOften);
  Process sleeper(place);
  ASSERT_TRUE(keeper.commit({CreateStream{"s", {}}}).ok());
  const auto begins = [&] {
    const std::lock_guard lock(place.mutex);
    return place.log.begin()->first.segment;
  };
  EXPECT_EQ(word(keeper.append("k0", std::string(700, 'x'))), "fresh");
  for (std::uint64_t n = 1; begins() == 1; ++n, std::this_thread::yield()) {
    keeper.append("k" + std::to_string(n), std::string(700, 'x'));
    EXPECT_TRUE(keeper.commit({Trim{"s", Sequence{n}}}).ok());
  }
  EXPECT_EQ(said_until_heard(sleeper,
                             Append{.stream = "s", .payload = std::string(700, 'x'), .id = "k0"}),
            "duplicate");
}

// E7: whoever only looks is answered by what was there when it asked, however fast others write.
TEST_F(SharedAwayTest, WhoLooksIsAnsweredAlthoughThereIsAlwaysNews) {
  away_.log.always_before([&] { keeper_.append("n" + std::to_string(count_++)); });
  for (int looks = 0; looks < 10; ++looks) {
    const auto told = away_.store->describe("s");
    ASSERT_TRUE(told) << told.error().text();
    EXPECT_GE(told->last.value, static_cast<std::uint64_t>(looks + 1));
  }
}

TEST_F(SharedAwayTest, WhoIsNeverFirstIsToldSo) {
  std::atomic<bool> others = true;
  away_.log.always_before([&] {
    if (others) keeper_.append("n" + std::to_string(count_++));
  });
  const Verdict told = away_.append("mine");
  ASSERT_TRUE(std::holds_alternative<Refused>(told));
  EXPECT_EQ(std::get<Refused>(told).error.code, Errc::kUnavailable);
  EXPECT_THAT(std::get<Refused>(told).error.detail, HasSubstr("were first each time"));
  others = false;
  EXPECT_EQ(word(away_.append("mine")), "fresh");
}

// W1: a state that is built anew is no start.
TEST_F(SharedAwayTest, LogTimeDoesNotJumpWhenEverythingIsReadAnew) {
  const Claim claim{.scope = "c", .key = "k", .owner = "w", .lease = std::chrono::minutes{10}};
  EXPECT_EQ(word(keeper_.one(claim)), "fresh");
  EXPECT_EQ(word(away_.append("1")), "fresh");
  keeper_.clock.jump(3'600'000);
  away_.clock.jump(3'600'000);
  place_.lose_last(1);
  EXPECT_EQ(said_until_heard(away_, claim), "in_progress");
  EXPECT_EQ(said_until_heard(keeper_, claim), "in_progress");
}

// E3: whoever only follows clears away as much as who writes.
TEST_F(SharedAwayTest, WhoFollowsForgetsAsFastAsOthersWrite) { follow_many(false); }
TEST_F(SharedAwayTest, WhoWritesAndFollowsForgetsAsFastAsOthersWrite) { follow_many(true); }

// E5: … and one that is gone although it is needed is.
TEST_F(SharedAwayTest, ASegmentThatIsNeededAndMissingIsDamage) {
  Process plain(place_);
  const Claim claim{.scope = "c", .key = "k", .owner = "w", .lease = std::chrono::minutes{10}};
  const Fence fence = std::get<Claimed>(plain.one(claim)).fence;
  const std::string large(3'000, 'r');
  const Settle settle{.scope = "c", .key = "k", .fence = fence, .result = {200, "", large}};
  EXPECT_EQ(word(plain.one(settle)), "done");
  const std::uint32_t segment = last_segment();
  while (last_segment() <= segment + 1) {
    plain.append("f" + std::to_string(count_++), std::string(700, 'x'));
  }
  ask(away_);
  {
    const std::lock_guard lock(place_.mutex);
    std::erase_if(place_.log, [&](const auto& one) { return one.first.segment == segment; });
  }
  EXPECT_FALSE(away_.commit({claim}));
  EXPECT_FALSE(away_.commit({claim}));
  while (away_.store->statistics() && !away_.store->statistics()->damaged) {
    std::this_thread::yield();
  }
}

// What was received may be trimmed by others, and its segment be gone, before the answer is here.
TEST_F(SharedAwayTest, ASegmentThatGoesBeforeTheAnswerIsNoDamage) {
  EXPECT_EQ(word(keeper_.append("r", std::string(700, 'r'))), "fresh");
  EXPECT_EQ(word(keeper_.one(CreateConsumer{"s", "c", {}})), "done");
  const std::uint32_t segment = last_segment();
  away_.log.after_append([&] { drop(segment); });
  const auto received = away_.commit({Receive{.stream = "s", .consumer = "c", .owner = "w"}});
  EXPECT_TRUE(received || received.error().code != Errc::kCorruption) << received.error().text();
  ask(away_);
  EXPECT_FALSE(away_.store->statistics()->damaged);
  EXPECT_EQ(said_until_heard(away_, Append{.stream = "s", .payload = "p", .id = "after"}), "fresh");
}

// E10: keepers that died while they wrote leave files behind that nobody else would remove.
TEST(SharedLeftoversTest, ANewKeeperRemovesWhatOthersBegan) {
  MemoryPlace place;
  {
    const Process first(place);
    const std::lock_guard lock(place.mutex);
    place.files["snapshot-0000000000000030.snap.tmp"] = std::make_shared<std::string>("half");
  }
  const Process second(place);
  const std::lock_guard lock(place.mutex);
  EXPECT_FALSE(place.files.contains("snapshot-0000000000000030.snap.tmp"));
}

}  // namespace
}  // namespace hapax::shared
