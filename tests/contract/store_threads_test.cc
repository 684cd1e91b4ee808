// Many callers at once: one winner, one record, every call answered.
#include <atomic>
#include <future>
#include <mutex>
#include <set>

#include "store_contract.h"

namespace hapax::contract {
namespace {

class Threads : public StoreContract {
 protected:
  static void on_threads(int count, const std::function<void(int)>& work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_P(Threads, OfAllWhoClaimAKeyOneWins) {
  constexpr int kKeys = 100;
  std::vector<std::atomic<int>> winners(kKeys);
  std::mutex mutex;
  std::set<std::uint64_t> fences;
  on_threads(16, [&](int thread) {
    const std::string owner = "worker " + std::to_string(thread);
    for (int i = 0; i < kKeys; ++i) {
      const int key = (i + thread * 7) % kKeys;
      const std::string name = "k" + std::to_string(key);
      const Answer answer = commit(
          {Claim{.scope = "c", .key = name, .owner = owner, .lease = std::chrono::hours{1}}});
      if (const auto* won = std::get_if<Claimed>(&answer.verdicts[0])) {
        ++winners[static_cast<std::size_t>(key)];
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(fences.insert(won->fence.value).second);
      } else {
        EXPECT_NE(as<InProgress>(answer.verdicts[0]).owner, owner);
      }
    }
  });
  for (const auto& won : winners) EXPECT_EQ(won.load(), 1);
  EXPECT_EQ(store().statistics().value().claims_open, 100U);
}

TEST_P(Threads, TheSameIdsFromManyAreStoredOnce) {
  constexpr int kIds = 1'000;
  make_stream("s");
  std::vector<std::atomic<int>> fresh(kIds);
  std::vector<std::atomic<std::uint64_t>> sequence(kIds);
  on_threads(8, [&](int thread) {
    for (int i = 0; i < kIds; i += 20) {
      std::vector<std::string> ids;
      std::vector<int> which;
      for (int j = 0; j < 20; ++j) {
        which.push_back((i + j + thread * 137) % kIds);
        ids.push_back("id " + std::to_string(which.back()));
      }
      std::vector<Op> ops;
      for (const std::string& id : ids) {
        ops.push_back(Append{.stream = "s", .payload = id, .id = id});
      }
      const Answer answer = commit(ops);
      for (std::size_t j = 0; j < ops.size(); ++j) {
        const auto at = static_cast<std::size_t>(which[j]);
        std::uint64_t told = 0;
        if (const auto* stored = std::get_if<Appended>(&answer.verdicts[j])) {
          ++fresh[at];
          told = stored->sequence.value;
        } else {
          told = as<Duplicate>(answer.verdicts[j]).sequence.value;
        }
        std::uint64_t unset = 0;
        const bool first = sequence[at].compare_exchange_strong(unset, told);
        EXPECT_TRUE(first || unset == told) << ids[j];
      }
    }
  });
  for (const auto& times : fresh) EXPECT_EQ(times.load(), 1);
  always([&] {
    EXPECT_EQ(last("s"), Sequence{kIds});
    std::set<std::string> seen;
    for (const Record& record : records("s")) seen.insert(record.id);
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(kIds));
  });
}

TEST_P(Threads, EveryRecordIsAckedOnceByWorkersThatShareAConsumer) {
  constexpr std::uint64_t kRecords = 400;
  make_stream("s");
  std::vector<Op> ops(kRecords, Op{Append{.stream = "s", .payload = "p"}});
  commit(ops);
  std::mutex mutex;
  std::vector<std::uint64_t> handled;
  on_threads(8, [&](int) {
    for (;;) {
      const std::vector<Delivery> got = receive("s", "c", 7);
      if (got.empty()) return;
      for (const Delivery& one : got) {
        run<Done>(Ack{"s", "c", receipt_of(one)});
        const std::lock_guard lock(mutex);
        handled.push_back(one.record.sequence.value);
      }
    }
  });
  const std::set<std::uint64_t> distinct(handled.begin(), handled.end());
  EXPECT_EQ(handled.size(), kRecords);
  EXPECT_EQ(distinct.size(), kRecords);
  EXPECT_EQ(store().describe("s").value().consumers[0].floor, Sequence{kRecords});
}

// E3: with nothing else to do, what is over is cleared at once and not by and by.
TEST_P(Threads, WhatIsOverIsClearedAtOnceWhenNothingElseIsToDo) {
  constexpr std::size_t kMany = 100'000;
  const Window second{std::chrono::seconds{1}};
  make_stream("s", {.window = second, .retention = {.count = 10}});
  std::vector<std::string> names(kMany);
  std::vector<Op> ops;
  for (std::size_t i = 0; i < kMany; ++i) {
    names[i] = std::to_string(i);
    ops.emplace_back(Append{.stream = "s", .payload = "p", .id = names[i]});
  }
  commit(ops);
  ops.clear();
  for (const std::string& name : names) {
    ops.emplace_back(Claim{.scope = "c", .key = name, .lease = Duration{1}, .retention = second});
  }
  const Time end = commit(ops).time + Duration{2'000};
  wait_until(end);
  const auto cleared = [this] {
    const Statistics now = store().statistics().value();
    return now.ids == 0 && now.claims_open == 0;
  };
  wait_for(cleared, Duration{15'000});  // By and by takes 24 s or more.
}

TEST_P(Threads, ReadersSeeARunOfWholeCommitsWhileWritersWrite) {
  make_stream("s");
  std::atomic<bool> done = false;
  on_threads(4, [&](int thread) {
    if (thread == 0) {
      const std::string payload(2'000, 'p');
      const std::vector<Op> pair(2, Op{Append{.stream = "s", .payload = payload}});
      for (int i = 0; i < 150; ++i) EXPECT_TRUE(commit(pair).committed);
      done = true;
      return;
    }
    while (!done) {
      const auto read = store().read({.stream = "s", .max = 1'000});
      ASSERT_TRUE(read.ok()) << read.error().text();
      EXPECT_EQ(read->records.size() % 2, 0U);
      EXPECT_EQ(read->records.size(), read->last.value);
    }
  });
}

TEST_P(Threads, SubmittedCommitsAreDecidedAndAnsweredInOrder) {
  make_stream("s");
  constexpr std::size_t kCommits = 500;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < kCommits; ++i) texts.push_back(std::to_string(i));
  std::vector<Op> ops;
  for (const std::string& text : texts) {
    ops.push_back(Append{.stream = "s", .payload = text, .id = text});
  }
  std::mutex mutex;
  std::vector<std::uint64_t> answered;
  for (const Op& op : ops) {
    Commit commit;
    commit.ops = {&op, 1};
    store().submit(commit, [&](const Result<Answer>& answer) {
      const std::lock_guard lock(mutex);
      answered.push_back(as<Appended>(answer->verdicts[0]).sequence.value);
    });
  }
  EXPECT_EQ(last("s"), Sequence{kCommits});
  close();  // Answers all of them.
  ASSERT_EQ(answered.size(), kCommits);
  for (std::size_t i = 0; i < kCommits; ++i) EXPECT_EQ(answered[i], i + 1);
  open();
  EXPECT_EQ(payloads(records("s")), texts);
}

// E4: more than the queue holds, and each answer submits another one.
TEST_P(Threads, AnAnswerMaySubmitHoweverFullTheQueueIs) {
  constexpr int kCommits = 20'000;
  make_stream("s");
  const Op op = Append{.stream = "s", .payload = "p"};
  Commit commit;
  commit.ops = {&op, 1};
  std::atomic<int> answered = 0;
  int refused = 0;  // at once, on this thread
  const auto answer = [&](const Result<Answer>& told) { answered += told.ok() ? 1 : 0; };
  for (int i = 0; i < kCommits; ++i) {
    store().submit(commit, [&](const Result<Answer>& told) {
      if (!told) {
        EXPECT_EQ(told.error().code, Errc::kUnavailable);
        ++refused;
        return;
      }
      answer(told);
      store().submit(commit, answer);
    });
  }
  const int taken = kCommits - refused;
  wait_for([&] { return answered == 2 * taken; });
  EXPECT_EQ(last("s"), Sequence{static_cast<std::uint64_t>(2 * taken)});
}

// E13: whoever serves connections must go on while the store stands still.
TEST_P(Threads, SubmittingNeverWaitsForRoom) {
  constexpr int kMany = 40'000;  // more than wait at once
  make_stream("s");
  const Op op = Append{.stream = "s", .payload = "p"};
  Commit commit;
  commit.ops = {&op, 1};
  std::promise<void> let_go;
  std::promise<void> stands;
  store().submit(commit, [&](const Result<Answer>&) {
    stands.set_value();
    let_go.get_future().wait();
  });
  stands.get_future().wait();
  std::atomic<int> stored = 0;
  int refused = 0;
  for (int i = 0; i < kMany; ++i) {
    store().submit(commit, [&](const Result<Answer>& told) {
      if (told) {
        ++stored;
      } else {
        EXPECT_EQ(told.error().code, Errc::kUnavailable);
        ++refused;
      }
    });
  }
  EXPECT_GT(refused, 0);
  let_go.set_value();
  wait_for([&] { return stored == kMany - refused; });
  EXPECT_EQ(last("s"), Sequence{static_cast<std::uint64_t>(kMany - refused + 1)});
}

TEST_P(Threads, AWrongCommitIsAnsweredThroughSubmitToo) {
  std::atomic<int> answers = 0;
  store().submit(Commit{}, [&](const Result<Answer>& answer) {
    EXPECT_EQ(answer.error().code, Errc::kInvalidArgument);
    ++answers;
  });
  close();
  EXPECT_EQ(answers.load(), 1);
  open();
}

TEST_P(Threads, DestroyingTheStoreAnswersEveryCommitUnderWay) {
  for (int round = 0; round < 5; ++round) {
    make_stream("s");
    const std::uint64_t before = last("s").value;
    const std::string payload(500, 'p');
    const std::vector<Op> ops{Append{.stream = "s", .payload = payload}};
    Commit commit;
    commit.ops = ops;
    constexpr std::uint64_t kCommits = 300;
    std::atomic<std::uint64_t> stored = 0;
    std::atomic<std::uint64_t> refused = 0;
    for (std::uint64_t i = 0; i < kCommits; ++i) {
      store().submit(commit, [&](const Result<Answer>& answer) {
        if (answer.ok()) {
          ++stored;
        } else {
          EXPECT_EQ(answer.error().code, Errc::kShuttingDown);
          ++refused;
        }
      });
    }
    reopen();
    EXPECT_EQ(stored + refused, kCommits);
    EXPECT_EQ(last("s").value, before + stored);
  }
}

TEST_P(Threads, RepeatsOfOneCommitIdAtOnceHappenOnce) {
  make_stream("s");
  std::atomic<int> first = 0;
  on_threads(8, [&](int) {
    for (int i = 0; i < 30; ++i) {
      const std::string id = "commit " + std::to_string(i);
      const Answer answer = commit({Append{.stream = "s", .payload = "p"}}, Mode::kAtomic, id);
      EXPECT_EQ(as<Appended>(answer.verdicts[0]).sequence.value, static_cast<std::uint64_t>(i) + 1);
      if (!answer.repeated) ++first;
    }
  });
  EXPECT_EQ(first.load(), 30);
  EXPECT_EQ(last("s"), Sequence{30});
}

TEST_P(Threads, DeadLettersAndRedrivesOfRecordsOnTheirWayToTheDisk) {
  make_stream("s");
  run<Done>(CreateConsumer{"s", "c", {.attempts_max = 1}});
  on_threads(4, [&](int thread) {
    const std::string payload(300, static_cast<char>('a' + thread));
    for (int i = 0; i < 60; ++i) {
      append("s", payload);
      for (const Delivery& one : receive("s", "c", 2)) {
        run<Done>(Nack{"s", "c", receipt_of(one), {}, "no"});
      }
    }
  });
  for (const Record& record : records("s.dead")) {
    EXPECT_EQ(record.payload, std::string(300, record.payload.front()));
  }
  EXPECT_EQ(last("s.dead").value, 240U);
}

INSTANTIATE_TEST_SUITE_P(, Threads, testing::ValuesIn(all_stores()), name_of);

}  // namespace
}  // namespace hapax::contract
