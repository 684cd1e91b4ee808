#include "shared/shared_store.h"

#include <atomic>
#include <functional>
#include <latch>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shared/process_test.h"

namespace hapax::shared {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::SizeIs;
using Trouble = MemoryLog::Trouble;

class SharedStoreTest : public testing::Test {
 protected:
  SharedStoreTest() { EXPECT_TRUE(a_.commit({CreateStream{"s", {}}}).ok()); }

  MemoryPlace place_;
  Process a_{place_};
  Process b_{place_};
};

// --- E7: several behave as one -------------------------------------------------------------------

// E7: whatever one was told, the other knows.
TEST_F(SharedStoreTest, EachSeesWhatTheOtherWasAnswered) {
  EXPECT_EQ(word(a_.append("1")), "fresh");
  EXPECT_EQ(word(b_.append("1")), "duplicate");
  EXPECT_EQ(word(b_.append("2")), "fresh");
  EXPECT_THAT(a_.ids(), ElementsAre("1", "2"));
  const Verdict claimed = b_.one(Claim{.scope = "c", .key = "k", .owner = "b"});
  EXPECT_EQ(word(a_.one(Claim{.scope = "c", .key = "k", .owner = "a"})), "in_progress");
  EXPECT_EQ(
      word(b_.one(Settle{.scope = "c", .key = "k", .fence = std::get<Claimed>(claimed).fence})),
      "done");
  EXPECT_EQ(word(a_.one(Claim{.scope = "c", .key = "k", .owner = "a"})), "duplicate");
}

// E7: one that was overtaken between deciding and appending decides again.
TEST_F(SharedStoreTest, WhoIsOvertakenDecidesAgain) {
  a_.log.before_append([this] { EXPECT_EQ(word(b_.append("x", "first")), "fresh"); });
  EXPECT_EQ(word(a_.append("x", "first")), "duplicate");
  a_.log.before_append([this] { EXPECT_EQ(word(b_.append("y", "first")), "fresh"); });
  EXPECT_EQ(word(a_.append("y", "second")), "conflict");
  a_.log.before_append([this] { EXPECT_EQ(word(b_.append("z")), "fresh"); });
  const Verdict behind = a_.append("w");
  EXPECT_EQ(std::get<Appended>(behind).sequence, Sequence{4});
  EXPECT_THAT(a_.ids(), ElementsAre("x", "y", "z", "w"));
  EXPECT_THAT(b_.ids(), ElementsAre("x", "y", "z", "w"));
}

TEST_F(SharedStoreTest, ManyCallersOfBothStoreEachIdOnce) {
  std::atomic<int> fresh{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      Process& process = caller % 2 == 0 ? a_ : b_;
      for (int i = 0; i < 50; ++i) {
        if (word(process.append("id" + std::to_string(i))) == "fresh") ++fresh;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(fresh, 50);
  EXPECT_THAT(a_.ids(), SizeIs(50));
  EXPECT_EQ(a_.ids(), b_.ids());
  EXPECT_EQ(a_.store->describe("s")->last, Sequence{50});
}

// E5, E7: what an old state needs may have been removed by now; that is no damage.
TEST_F(SharedStoreTest, WhoIsBehindTakesNothingThatWasRemovedForDamage) {
  EXPECT_EQ(word(a_.append("1", std::string(5'000, 'x'))), "fresh");
  ASSERT_TRUE(a_.commit({CreateConsumer{"s", "c", {.attempts_max = 1}}}).ok());
  const Verdict got = b_.one(Receive{.stream = "s", .consumer = "c"});
  const Delivery& delivery = std::get<Received>(got).deliveries.at(0);
  const Receipt receipt{delivery.record.sequence, delivery.token};
  ASSERT_TRUE(a_.commit({Trim{"s", Sequence{2}}}).ok());
  ASSERT_TRUE(a_.folder.remove(journal::segment_name(1)).ok());
  // A dead letter, by what b knows: it would be a copy of the record.
  b_.one(Nack{.stream = "s", .consumer = "c", .receipt = receipt});
  EXPECT_EQ(word(b_.append("2")), "fresh");
  EXPECT_FALSE(b_.store->statistics()->damaged);
}

// --- E8: appends of unknown outcome --------------------------------------------------------------

// E8: it was written, and only the answer was lost: it is found, not written again.
TEST_F(SharedStoreTest, AnAppendWhoseAnswerWasLostIsFound) {
  a_.log.trouble(Trouble::kAnswerLost);
  EXPECT_EQ(word(a_.append("1")), "fresh");
  EXPECT_EQ(place_.batches(), 2U);
  EXPECT_THAT(b_.ids(), ElementsAre("1"));
}

TEST_F(SharedStoreTest, AnAppendThatNeverArrivedIsSaidAgain) {
  a_.log.trouble(Trouble::kNeverArrived, 2);
  EXPECT_EQ(word(a_.append("1")), "fresh");
  EXPECT_THAT(b_.ids(), ElementsAre("1"));
}

TEST_F(SharedStoreTest, AnAppendWhoseAnswerWasLostAndThatOthersFollowedIsFound) {
  a_.log.trouble(Trouble::kAnswerLost);
  // The second try finds what the first one wrote, and b's behind it.
  EXPECT_EQ(word(a_.append("1")), "fresh");
  EXPECT_EQ(word(b_.append("2")), "fresh");
  EXPECT_THAT(a_.ids(), ElementsAre("1", "2"));
}

// E8: who cannot wait any longer is told what is known: nothing, if it may have been written.
TEST_F(SharedStoreTest, PatienceEndsWithAnHonestAnswer) {
  a_.log.trouble(Trouble::kDown, 1);
  EXPECT_EQ(std::get<Refused>(a_.append("1")).error.code, Errc::kUnavailable);
  EXPECT_EQ(a_.store->read({.stream = "s"}).error().code, Errc::kUnavailable);
  a_.log.trouble(Trouble::kNone);
  EXPECT_THAT(b_.ids(), ElementsAre());
  a_.log.trouble(Trouble::kNeverArrived, 1'000'000);
  EXPECT_EQ(std::get<Refused>(a_.append("2")).error.code, Errc::kOutcomeUnknown);
  a_.log.trouble(Trouble::kNone);
  // It may take until the next try that it is there.
  while (b_.ids().empty()) std::this_thread::yield();
  while (word(a_.append("2")) != "duplicate") std::this_thread::yield();
  EXPECT_THAT(b_.ids(), ElementsAre("2"));
}

TEST_F(SharedStoreTest, AFullPlaceRefusesAndGoesOn) {
  a_.log.trouble(Trouble::kFull);
  EXPECT_EQ(std::get<Refused>(a_.append("1")).error.code, Errc::kNoSpace);
  EXPECT_THAT(a_.ids(), ElementsAre());
  EXPECT_EQ(word(a_.append("1")), "fresh");
}

// --- E9: a log that lost something ---------------------------------------------------------------

// E9: what is lost is not served, and nothing is built on it.
TEST_F(SharedStoreTest, ALogThatLostItsEndIsReadAnew) {
  EXPECT_EQ(word(a_.append("1")), "fresh");
  EXPECT_EQ(word(a_.append("2")), "fresh");
  EXPECT_EQ(word(b_.append("2")), "duplicate");
  place_.lose_last(1);
  // Whoever meets it first is told to try again.
  const auto tried = a_.commit({Append{.stream = "s", .payload = "p", .id = "3"}});
  EXPECT_TRUE(tried || tried.error().code == Errc::kUnavailable);
  if (!tried) {
    EXPECT_EQ(word(a_.append("3")), "fresh");
  }
  const auto read = b_.store->read({.stream = "s"});
  EXPECT_TRUE(read || read.error().code == Errc::kUnavailable);
  EXPECT_THAT(b_.ids(), ElementsAre("1", "3"));
  EXPECT_EQ(word(b_.append("2")), "fresh");
  const std::lock_guard lock(a_.mutex);
  ASSERT_THAT(a_.lines, SizeIs(2));
  EXPECT_THAT(a_.lines[0], HasSubstr("everything is read anew"));
  EXPECT_THAT(a_.lines[1], HasSubstr("the facts 3 to 3, written since "));
}

// Shares are no part of the state, which is built anew.
TEST_F(SharedStoreTest, SharesOutliveALogThatLostItsEnd) {
  a_.store->set_shares([](std::string_view) { return TenantShare{.streams_max = 1}; });
  EXPECT_THAT(word(a_.one(CreateStream{"another", {}})), HasSubstr("streams_max"));
  a_.append("lost");
  place_.lose_last(1);
  // Whoever meets it first is told to try again. Each process meets it, by itself or here.
  a_.append("first");
  const auto met = b_.store->read({.stream = "s"});
  EXPECT_TRUE(met || met.error().code == Errc::kUnavailable) << met.error().text();
  EXPECT_THAT(word(a_.one(CreateStream{"another", {}})), HasSubstr("streams_max"));
  EXPECT_EQ(word(b_.one(CreateStream{"another", {}})), "done");
  const auto tenants = a_.store->tenants();
  ASSERT_TRUE(tenants);
  ASSERT_THAT(*tenants, SizeIs(1));
  EXPECT_EQ(tenants->front().streams, 2U);
}

// E5, E9: what a read wants may lie in the lost end, and something else in its place by now.
TEST_F(SharedStoreTest, WhoReadsWhatIsLostMeanwhileTakesItForNoDamage) {
  EXPECT_EQ(word(a_.append("1", std::string(100, 'x'))), "fresh");
  {
    const std::lock_guard lock(place_.mutex);
    place_.before_payload = [this] {
      place_.lose_last(1);
      while (word(a_.append("2", std::string(300, 'y'))) != "fresh") std::this_thread::yield();
    };
  }
  const auto read = b_.store->read({.stream = "s"});
  EXPECT_TRUE(read || read.error().code == Errc::kUnavailable) << read.error().text();
  EXPECT_FALSE(b_.store->statistics()->damaged);
  EXPECT_THAT(b_.ids(), ElementsAre("2"));
}

// E9: it cannot be read at once, perhaps: the database is still on its way up.
TEST_F(SharedStoreTest, ALogThatCannotBeReadAnewIsReadLater) {
  EXPECT_EQ(word(a_.append("1")), "fresh");
  EXPECT_EQ(word(a_.append("2")), "fresh");
  a_.log.trouble(Trouble::kNoHistory);
  place_.lose_last(1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(std::get<Refused>(a_.append("3")).error.code, Errc::kUnavailable);
    EXPECT_EQ(a_.store->read({.stream = "s"}).error().code, Errc::kUnavailable);
  }
  a_.log.trouble(Trouble::kNone);
  EXPECT_EQ(word(a_.append("3")), "fresh");
  EXPECT_THAT(a_.ids(), ElementsAre("1", "3"));
  EXPECT_FALSE(a_.store->statistics()->damaged);
}

// E5: what others wrote is not what they wrote: whoever waits is told, and nobody is asked forever.
TEST_F(SharedStoreTest, DamageInWhatOthersWroteEndsTheService) {
  // Others follow by themselves and may have seen it whole; this one does only when it is asked.
  constexpr std::chrono::milliseconds kPatience{100};
  Process asked(place_, std::uint64_t{1} << 30, 0, kPatience, kNeverKeeps);
  EXPECT_EQ(word(a_.append("1")), "fresh");
  place_.damage_last();
  EXPECT_EQ(std::get<Refused>(asked.append("2")).error.code, Errc::kCorruption);
  EXPECT_EQ(asked.store->read({.stream = "s"}).error().code, Errc::kCorruption);
}

// Who makes a store and stands still does not keep others waiting for ever.
TEST(SharedBeginningTest, AStoreThatAnotherMakesIsWaitedForWithABound) {
  MemoryPlace place;
  place.locks.insert(std::string(kMakingName));
  MemoryLog log(place);
  MemoryFolder folder(place, log.life());
  ShiftedClock clock(0);
  host::HostEntropy entropy;
  SharedOptions options;
  options.patience = std::chrono::milliseconds{50};
  const auto opened =
      SharedStore::open(nullptr, {log, folder, clock, entropy}, options, [](const auto&) {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::kLocked);
  EXPECT_THAT(opened.error().text(), HasSubstr("another process makes this store"));
}

// --- E10: the keeper -----------------------------------------------------------------------------

// E10: one process keeps; when it ends another one does, and what it keeps is whole.
TEST(SharedKeeperTest, AnotherKeeperGoesOn) {
  MemoryPlace place;
  constexpr std::uint64_t kOften = 8'192;
  auto first = std::make_unique<Process>(place, kOften);
  Process second(place, kOften);
  ASSERT_TRUE(first->commit({CreateStream{"s", {}}}).ok());
  const auto snapshots = [&] {
    const std::lock_guard lock(place.mutex);
    return std::count_if(place.files.begin(), place.files.end(),
                         [](const auto& one) { return one.first.starts_with("snapshot-"); });
  };
  int next = 0;
  const auto fill_until = [&](Process& by, const std::function<bool()>& enough) {
    for (; !enough(); std::this_thread::yield()) {
      by.append("id" + std::to_string(next++), std::string(500, 'x'));
    }
  };
  fill_until(second, [&] { return snapshots() >= 2; });
  const std::string of_first = newest_snapshot(place);
  first.reset();
  fill_until(second, [&] { return newest_snapshot(place) > of_first; });
  Process third(place, kOften);
  EXPECT_EQ(word(third.append("id0", std::string(500, 'x'))), "duplicate");
  EXPECT_EQ(third.store->describe("s")->last.value, static_cast<std::uint64_t>(next));
  EXPECT_EQ(third.ids(), second.ids());
}

// A store with so many ids that a part of a snapshot is written for good.
class SharedPartsTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kOften = std::uint64_t{1} << 20;

  SharedPartsTest() {
    EXPECT_TRUE(
        keeper_->commit({CreateStream{"s", {.window = Window{std::chrono::hours{1}}}}}).ok());
  }
  // A part is full of ids that are forgotten in one slice of time: how many it takes depends on
  // where in a slice this begins.
  void fill_a_part() {
    for (int n = 0; parts().empty();) {
      std::vector<std::string> ids;
      std::vector<Op> ops;
      for (int i = 0; i < 4'096; ++i) ids.push_back("id" + std::to_string(n++));
      for (const std::string& id : ids) ops.push_back(Append{.stream = "s", .id = id});
      ASSERT_TRUE(keeper_->commit(ops).ok());
    }
  }
  static void append_until(Process& by, const std::function<bool()>& enough) {
    for (; !enough(); std::this_thread::yield()) {
      by.one(Append{.stream = "s", .payload = std::string(100'000, 'x')});
    }
  }
  std::set<std::string> parts() {
    const std::lock_guard lock(place_.mutex);
    std::set<std::string> names;
    for (const auto& [file, bytes] : place_.files) {
      if (file.starts_with("part-") && file.ends_with(".part")) names.insert(file);
    }
    return names;
  }
  void refuse_snapshots() {
    keeper_->on_line = [this] {
      if (!told_.wanted.exchange(false)) return;
      told_.now.count_down();
      told_.go_on.wait();
    };
    const std::lock_guard lock(place_.mutex);
    place_.refused = "snapshot-";
  }
  // Until people are told that a snapshot was given up, who then hold up the next one.
  void until_given_up() {
    told_.wanted = true;
    append_until(*keeper_, [&] { return told_.now.try_wait(); });
  }
  // The next one is to begin as soon as it may.
  void until_due() {
    int appends = 0;
    append_until(*keeper_, [&] { return ++appends > 200; });
  }

  struct {
    std::atomic<bool> wanted = false;
    std::latch now{1};
    std::latch go_on{1};
  } told_;
  MemoryPlace place_;
  std::unique_ptr<Process> keeper_ = std::make_unique<Process>(place_, kOften);
};

// E10: what the snapshot before its own needs is not removed by a new keeper, even if it needs none
// of it itself.
TEST_F(SharedPartsTest, ANewKeeperKeepsThePartsOfTheSnapshotBeforeItsOwn) {
  fill_a_part();
  const std::string unfinished = newest_snapshot(place_);
  append_until(*keeper_, [&] { return newest_snapshot(place_) > unfinished; });
  keeper_.reset();
  const std::string before = newest_snapshot(place_);
  const std::set<std::string> needed = parts();
  {
    const std::lock_guard lock(place_.mutex);
    place_.refused = "snapshot-";
    place_.before_refusing = 1;  // A second one of its own needs nothing of those before.
  }
  constexpr std::int64_t kAheadMs = 7'200'000;  // For it the ids are over.
  Process next(place_, kOften, kAheadMs);
  append_until(next, [&] { return newest_snapshot(place_) > before; });
  next.store.reset();
  ASSERT_TRUE(place_.files.contains(before));
  EXPECT_EQ(parts(), needed);
}

// E10: a part that was written for a snapshot that never came may be gone with a failover that lost
// nothing else.
TEST_F(SharedPartsTest, APartOfASnapshotThatWasGivenUpIsNotReliedUpon) {
  refuse_snapshots();
  fill_a_part();
  until_given_up();
  until_due();
  const std::set<std::string> lost = parts();
  {
    const std::lock_guard lock(place_.mutex);
    std::erase_if(place_.files, [](const auto& one) { return one.first.starts_with("part-"); });
    place_.refused.clear();
  }
  told_.go_on.count_down();
  append_until(*keeper_, [&] { return !newest_snapshot(place_).empty(); });
  Process other(place_);
  EXPECT_THAT(other.lines, SizeIs(0));
  EXPECT_THAT(parts(), IsSupersetOf(lost));
}

// While people are told that a snapshot was given up, the next one is due already.
TEST_F(SharedPartsTest, ASnapshotThatIsDueWhileTheOneBeforeIsGivenUpIsWritten) {
  refuse_snapshots();
  until_given_up();
  until_due();
  {
    const std::lock_guard lock(place_.mutex);
    place_.refused.clear();
  }
  told_.go_on.count_down();
  append_until(*keeper_, [&] { return !newest_snapshot(place_).empty(); });
  keeper_.reset();
}

// E8: an append was written, its answer was lost, and before it could be asked for, all of that was
// removed behind snapshots. Nobody may say that nothing happened.
TEST(SharedKeeperTest, WhatWasWrittenAndRemovedMeanwhileIsNotDenied) {
  MemoryPlace place;
  constexpr std::uint64_t kOften = 4'096;
  Process keeper(place, kOften);
  Process sleeper(place);
  ASSERT_TRUE(keeper.commit({CreateStream{"s", {}}}).ok());
  EXPECT_EQ(word(sleeper.append("0")), "fresh");
  const auto begins = [&] {
    const std::lock_guard lock(place.mutex);
    return place.log.begin()->first.segment;
  };
  const std::uint32_t now = begins();
  const auto remove_all = [&] {
    for (std::uint64_t n = 1; begins() == now; ++n, std::this_thread::yield()) {
      keeper.append("k" + std::to_string(n), std::string(700, 'x'));
      EXPECT_TRUE(keeper.commit({Trim{"s", Sequence{n}}}).ok());
    }
  };
  sleeper.log.trouble(Trouble::kAnswerLost);
  // Before the first append nothing; before the second all of it.
  sleeper.log.before_append([&] { sleeper.log.before_append(remove_all); });
  EXPECT_EQ(std::get<Refused>(sleeper.append("1")).error.code, Errc::kOutcomeUnknown);
  EXPECT_EQ(word(sleeper.append("1")), "duplicate");
}

// E9: nor does a snapshot that is on its way to a server that is gone keep callers waiting.
TEST(SharedKeeperTest, CallersDoNotWaitForASnapshotThatDoesNotGetOn) {
  MemoryPlace place;
  Process keeper(place, 4'096);
  ASSERT_TRUE(keeper.commit({CreateStream{"s", {}}}).ok());
  place.held = true;
  for (int n = 0; !place.holds; ++n) keeper.append("id" + std::to_string(n));
  place.lose_last(1);
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(std::get<Refused>(keeper.append("after")).error.code, Errc::kUnavailable);
  }
  place.held = false;
  while (word(keeper.append("after")) != "fresh") std::this_thread::yield();
}

// --- a process ends anywhere ---------------------------------------------------------------------

// E8, E10: whichever step is its last, done or not, what it had acknowledged is there, others go on
// and agree, and who begins from nothing finds the same.
class SharedDeathTest : public testing::TestWithParam<Life::End> {
 protected:
  static constexpr std::uint64_t kOften = 4'096;  // so that snapshots, segments and cleaning come

  // Whether it died.
  bool die_at(int step) {
    MemoryPlace place;
    auto mortal = std::make_unique<Process>(place, kOften, 0, std::chrono::milliseconds{0});
    Process other(place);
    EXPECT_TRUE(other.commit({CreateStream{"s", {}}}).ok());
    const Life& life = mortal->log.life();
    mortal->log.life().ends_at(step, GetParam());
    std::set<std::string> acknowledged;
    for (int i = 0; i < 24 && !life.over(); ++i) {
      const std::string id = "id" + std::to_string(i);
      if (word(mortal->append(id, std::string(700, 'x'))) == "fresh") acknowledged.insert(id);
      if (i % 8 != 7) continue;
      const std::string before = newest_snapshot(place);
      while (!life.over() && newest_snapshot(place) == before) std::this_thread::yield();
      const Sequence up_to{static_cast<std::uint64_t>(i - 4)};
      ignore(mortal->commit({Trim{"s", up_to}}), "it may be dead");
    }
    const bool died = life.over();
    mortal.reset();
    check(place, other, acknowledged);
    return died;
  }

  static void check(MemoryPlace& place, Process& other, const std::set<std::string>& acknowledged) {
    // E9: what it stood on may have been removed behind snapshots.
    while (!other.store->describe("s")) std::this_thread::yield();
    for (const std::string& id : acknowledged) {
      ASSERT_TRUE(other.store->find_id("s", id, std::nullopt)->has_value()) << id;
    }
    Process third(place, kOften);
    ASSERT_EQ(word(third.append("after")), "fresh");
    ASSERT_EQ(word(other.append("after")), "duplicate");
    ASSERT_EQ(third.ids(), other.ids());
    ASSERT_EQ(third.store->describe("s")->last, other.store->describe("s")->last);
    ASSERT_FALSE(third.store->statistics()->damaged);
    ASSERT_FALSE(other.store->statistics()->damaged);
  }
};

TEST_P(SharedDeathTest, NothingIsLostAndOthersGoOn) {
  for (int step = 1; die_at(step) && !HasFatalFailure(); ++step) {
  }
}

std::string name_of_end(const testing::TestParamInfo<Life::End>& info) {
  return info.param == Life::End::kBeforeStep ? "BeforeTheStep" : "AfterTheStep";
}
INSTANTIATE_TEST_SUITE_P(Ends, SharedDeathTest,
                         testing::Values(Life::End::kBeforeStep, Life::End::kAfterStep),
                         name_of_end);

}  // namespace
}  // namespace hapax::shared
