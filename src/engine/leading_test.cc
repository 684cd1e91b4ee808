// E6: callers that lead.
#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/embedded_store.h"
#include "engine/rig_test.h"

namespace hapax::engine {
namespace {

class LeadingTest : public EngineRig {
 protected:
  void SetUp() override {
    commit({CreateStream{"s", {}}, CreateStream{"before", {}}});
    commit({Append{.stream = "before", .payload = "p", .id = "known"}});
    clock_.advance(1'000);
    disk_.watch([this](std::string_view call) {
      if (call.find("sync journal-") != std::string_view::npos) sync();
      if (call.find("write journal-") == std::string_view::npos) return;
      writes_.fetch_add(1);
      const std::string length(call.substr(call.find('+') + 1));
      if (std::stoul(length) > kLarge) large_writes_.fetch_add(1);
    });
    store_.emplace(
        nullptr, std::move(engine_), [](const Error&) { std::abort(); }, [](const std::string&) {});
  }

  Result<Answer> append() {
    const Op op = Append{.stream = "s", .payload = "p"};
    return store_->commit({.ops = {&op, 1}});
  }

  void sync() {
    if (large_writes_ != large_syncs_) begun_.release();
    large_syncs_ = large_writes_.load();
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{sync_ms_};
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (!hold_) return;
    held_.release();
    if (known_.try_acquire_for(std::chrono::milliseconds{300})) ++answered_beside_;
  }

  static constexpr std::size_t kLarge = 20'000;  // for the journal thread
  std::atomic<int> writes_ = 0;
  std::atomic<int> large_writes_ = 0;
  std::atomic<int> sync_ms_ = 0;
  std::atomic<bool> hold_ = false;
  std::atomic<int> large_syncs_ = 0;
  std::counting_semaphore<> begun_{0};  // the sync of a large write
  std::counting_semaphore<> held_{0};
  std::counting_semaphore<> known_{0};
  std::atomic<int> answered_beside_ = 0;
  std::optional<EmbeddedStore> store_;
};

// The state thread may be busy with its own affairs, but not for ever.
TEST_F(LeadingTest, WhoSubmitsHereIsAnsweredInsideOfTheCallOnceAllRests) {
  const Op op = Append{.stream = "s", .payload = "p"};
  std::atomic<int> answered = 0;
  bool inside = false;
  int asked = 0;
  while (!inside) {
    ++asked;
    const auto here = std::this_thread::get_id();
    store_->submit_here({.ops = {&op, 1}}, [&, here](const Result<Answer>& answer) {
      EXPECT_TRUE(answer.ok());
      if (std::this_thread::get_id() == here) inside = true;
      answered.fetch_add(1);
      answered.notify_all();
    });
    for (int seen = answered; seen != asked; seen = answered) answered.wait(seen);
  }
  EXPECT_EQ(store_->describe("s")->last, Sequence{static_cast<std::uint64_t>(asked)});
}

// E4
TEST_F(LeadingTest, WhatALeaderAnswersMaySubmit) {
  const Op op = Append{.stream = "s", .payload = "p"};
  for (int i = 0; i < 50; ++i) {
    std::latch both(2);
    store_->submit_here({.ops = {&op, 1}}, [&](const Result<Answer>&) {
      store_->submit({.ops = {&op, 1}}, [&](const Result<Answer>&) { both.count_down(); });
      both.count_down();
    });
    both.wait();
  }
  EXPECT_EQ(store_->describe("s")->last, Sequence{100});
}

// A snapshot waits for the batch of a sweep, and everybody for the snapshot; the state thread wrote
// that batch itself, so that nobody will tell it.
TEST_F(LeadingTest, ASnapshotBehindASweepHoldsNobodyUp) {
  using std::chrono::steady_clock;
  const Op keep_one = CreateStream{"short", {.retention = {.count = 1}}};
  ASSERT_TRUE(store_->commit({.ops = {&keep_one, 1}}).ok());
  const std::string payload(3'000, 'p');
  const Op op = Append{.stream = "short", .payload = payload};
  std::promise<void> never;  // A caller that is not always there.
  const std::future<void> pause = never.get_future();
  const auto held_up = [&] {
    int count = 0;
    for (int i = 0; i < 150; ++i) {
      const auto began = steady_clock::now();
      EXPECT_TRUE(store_->commit({.ops = {&op, 1}}).ok());
      if (steady_clock::now() - began > std::chrono::milliseconds{100}) ++count;
      pause.wait_for(std::chrono::milliseconds{5});
    }
    return count;
  };
  // A busy machine holds up some, now and then; a fault does in every round.
  for (int round = 1; held_up() > 1; ++round) ASSERT_LT(round, 5);
}

// One slice of a sweep looks at 4,000 streams at most; the next one goes on behind them.
TEST_F(LeadingTest, ASweepReachesTheLastOfManyStreams) {
  std::vector<std::string> names;
  for (int i = 0; i < 4'100; ++i) names.push_back("short" + std::to_string(i));
  std::vector<Op> ops;
  for (const std::string& name : names) {
    ops.emplace_back(CreateStream{name, {.retention = {.count = 1}}});
    if (ops.size() < 100 && &name != &names.back()) continue;
    ASSERT_TRUE(store_->commit({.ops = ops}).ok());
    ops.clear();
  }
  const std::vector<Op> two(2, Append{.stream = names.back(), .payload = "p"});
  ASSERT_TRUE(store_->commit({.ops = two}).ok());
  std::promise<void> never;
  const std::future<void> pause = never.get_future();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (store_->describe(names.back())->first != Sequence{2}) {
    ASSERT_LT(std::chrono::steady_clock::now(), until);
    pause.wait_for(std::chrono::milliseconds{5});
  }
}

TEST_F(LeadingTest, ManyLeadInTurnAndNothingIsLostOrDoubled) {
  constexpr int kThreads = 6;
  constexpr int kEach = 100;
  std::vector<std::atomic<int>> seen(kThreads * kEach + 1);
  const auto note = [&](const Result<Answer>& answer) {
    ASSERT_TRUE(answer.ok());
    const auto& appended = std::get<Appended>(answer->verdicts.front());
    seen.at(appended.sequence.value).fetch_add(1);
  };
  const auto work = [&](int kind) {
    const Op op = Append{.stream = "s", .payload = "p"};
    for (int i = 0; i < kEach; ++i) {
      std::latch one(1);
      const auto done = [&](const Result<Answer>& answer) {
        note(answer);
        one.count_down();
      };
      if (kind == 0) {
        note(append());
        continue;
      }
      if (kind == 1) store_->submit({.ops = {&op, 1}}, done);
      if (kind == 2) store_->submit_here({.ops = {&op, 1}}, done);
      EXPECT_TRUE(store_->describe("s").ok());
      one.wait();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i % 3);
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_EQ(seen[i], 1) << "sequence " << i;
}

// What was decided while a batch was written goes to the disk before that batch is answered. The
// first one's sync takes a while, so that the state thread comes to decide the second; longer each
// time, because nobody can see when it has.
TEST_F(LeadingTest, ALargeBatchIsWrittenWhileTheOneBeforeIsAnswered) {
  const std::string payload(kLarge, 'p');
  const Op op = Append{.stream = "s", .payload = payload};
  bool beside = false;
  for (int patience = 1; patience < 1'000 && !beside; patience *= 2) {
    std::latch both(2);
    std::atomic<int> writes = 1'000'000;  // with the first one's
    const auto look = [&](const Result<Answer>&) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{patience};
      while (!beside && std::chrono::steady_clock::now() < end) beside = writes_ > writes;
      both.count_down();
    };
    sync_ms_ = patience;
    while (begun_.try_acquire()) continue;
    store_->submit({.ops = {&op, 1}}, look);
    begun_.acquire();
    writes = writes_.load();
    store_->submit({.ops = {&op, 1}}, [&](const Result<Answer>&) { both.count_down(); });
    both.wait();
  }
  EXPECT_TRUE(beside);
}

// E1: where that is what most ask for, nobody waits for a slow disk who does not need it.
TEST_F(LeadingTest, WhatIsKnownIsAnsweredWhileASlowDiskSyncs) {
  const Op known = Append{.stream = "before", .payload = "p", .id = "known"};
  sync_ms_ = 3;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(append().ok());
  // Not each time: four times a second everybody waits for the disk, because something is tended.
  const Op op = Append{.stream = "s", .payload = "new"};
  hold_ = true;
  for (int round = 0; round < 20 && answered_beside_ == 0; ++round) {
    for (int i = 0; i < 64; ++i) EXPECT_TRUE(store_->commit({.ops = {&known, 1}}).ok());
    while (known_.try_acquire()) continue;
    std::latch both(2);
    store_->submit({.ops = {&op, 1}}, [&](const Result<Answer>&) { both.count_down(); });
    held_.acquire();
    store_->submit({.ops = {&known, 1}}, [&](const Result<Answer>& repeat) {
      EXPECT_EQ(word_of(repeat->verdicts.front()), "duplicate");
      known_.release();
      both.count_down();
    });
    both.wait();
  }
  EXPECT_GT(answered_beside_, 0);
  hold_ = false;
}

using LeadingDeathTest = LeadingTest;

// As on a thread of the store. Else whoever leads would meet it, and leave the lead taken for ever.
TEST_F(LeadingDeathTest, WhatIsThrownFromAnAnswerEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto throw_often = [this] {
    const Op op = Append{.stream = "s", .payload = "p"};
    for (int i = 0; i < 100; ++i) {
      try {
        store_->submit_here({.ops = {&op, 1}}, [](const Result<Answer>&) { throw 1; });
      } catch (int) {
        return;
      }
      EXPECT_TRUE(append().ok());
    }
  };
  EXPECT_DEATH(throw_often(), "");
}

}  // namespace
}  // namespace hapax::engine
