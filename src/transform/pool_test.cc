// Real worker processes: each limit, each kind of end, and that nobody else suffers.
#include "transform/pool.h"

#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"
#include "transform/fake_worker_test.h"

namespace hapax::transform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Time kTime = time_from_ms(1'700'000'000'123);

// As in jq/sandbox.h: there is no limit on memory in these builds.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kNoMemoryLimit = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kNoMemoryLimit = true;
#else
constexpr bool kNoMemoryLimit = false;
#endif
#else
constexpr bool kNoMemoryLimit = false;
#endif

class Pool : public testing::Test {
 protected:
  void start(TransformSettings settings = {}) { pool_ = TransformPool::start(settings).value(); }

  Result<Compiled> try_compile(TransformText text) {
    std::promise<Result<Compiled>> answered;
    auto answer = answered.get_future();
    EXPECT_TRUE(pool_->compile(std::move(text),
                               [&](Result<Compiled> got) { answered.set_value(std::move(got)); }));
    return answer.get();
  }
  ProgramId compile(TransformText text) {
    const auto compiled = try_compile(std::move(text)).value();
    if (const auto* faults = std::get_if<std::vector<ProgramFault>>(&compiled)) {
      ADD_FAILURE() << faults->front().message;
      return {};
    }
    return std::get<ProgramId>(compiled);
  }
  ProgramId compile(std::string main) { return compile(TransformText{.main = std::move(main)}); }

  std::future<Result<TransformOutcome>> begin(ProgramId program, std::string input) {
    auto answered = std::make_shared<std::promise<Result<TransformOutcome>>>();
    auto answer = answered->get_future();
    EXPECT_TRUE(pool_->run(program, std::move(input), kTime, [=](Result<TransformOutcome> got) {
      answered->set_value(std::move(got));
    }));
    return answer;
  }
  TransformOutcome run(ProgramId program, std::string input) {
    return begin(program, std::move(input)).get().value();
  }
  std::vector<std::string> outputs(ProgramId program, std::string input) {
    return outputs_of(run(program, std::move(input)));
  }
  static std::vector<std::string> outputs_of(const TransformOutcome& outcome) {
    if (const auto* failed = std::get_if<TransformFailed>(&outcome)) {
      return {"failed: " + failed->message};
    }
    std::vector<std::string> data;
    for (const auto& output : std::get<Transformed>(outcome).outputs) data.push_back(output.data);
    return data;
  }
  static TransformFailed failure_of(const TransformOutcome& outcome) {
    const auto* failed = std::get_if<TransformFailed>(&outcome);
    EXPECT_NE(failed, nullptr) << "it did not fail";
    return failed == nullptr ? TransformFailed{} : *failed;
  }

  std::unique_ptr<TransformPool> pool_;
};

TEST_F(Pool, ReshapesFiltersAndFansOut) {
  start();
  EXPECT_THAT(outputs(compile("{id, n: (.n + 1)}"), R"({"n":1,"id":"a"})"),
              ElementsAre(R"({"id":"a","n":2})"));
  EXPECT_THAT(outputs(compile("select(.n > 1)"), R"({"n":1})"), ElementsAre());
  EXPECT_THAT(outputs(compile(".[]"), R"([1,"zwei",null])"), ElementsAre("1", "\"zwei\"", "null"));
}

TEST_F(Pool, PicksEventTypeAndKeyOfEachOutput) {
  start();
  const auto program = compile({.main = ".items[]",
                                .event_type = R"j("item.\(.kind)")j",
                                .key = R"j("\($input.order)-\(.n)")j"});
  const auto outcome =
      run(program, R"({"order":7,"items":[{"kind":"a","n":1},{"kind":"b","n":2}]})");
  EXPECT_EQ(std::get<Transformed>(outcome),
            (Transformed{{{R"({"kind":"a","n":1})", "item.a", "7-1"},
                          {R"({"kind":"b","n":2})", "item.b", "7-2"}}}));
}

TEST_F(Pool, ARecordThatLoopsFailsAloneAndTheOthersAreRunAgain) {
  start({.workers = 2, .time_max = Duration{200}});
  const auto program = compile("if . == 7 then def f: f; f else . + 100 end");
  std::vector<std::future<Result<TransformOutcome>>> answers;
  for (int i = 0; i < 40; ++i) answers.push_back(begin(program, std::to_string(i)));
  for (int i = 0; i < 40; ++i) {
    const auto outcome = answers[static_cast<std::size_t>(i)].get().value();
    if (i == 7) {
      EXPECT_EQ(failure_of(outcome).fault, TransformFault::kTimeout);
    } else {
      EXPECT_THAT(outputs_of(outcome), ElementsAre(std::to_string(i + 100)));
    }
  }
  EXPECT_GE(pool_->counts().killed_for_time, 2U);
}

// Six records that loop wait at any time. Were there one queue for all, each record of the other
// program would wait for six of them.
TEST_F(Pool, AProgramThatAlwaysLoopsDoesNotHoldUpAnother) {
  constexpr int kRecords = 200;
  start({.workers = 2, .time_max = Duration{300}});
  const auto loops = compile("def f: f; f");
  const auto works = compile(".");
  TransformPool& pool = *pool_;
  std::atomic<bool> feeds = true;
  std::atomic<int> looped = 0;
  std::function<void(const Result<TransformOutcome>&)> again;
  again = [&](const Result<TransformOutcome>& outcome) {
    if (!outcome) return;  // The pool ends.
    ++looped;
    EXPECT_EQ(failure_of(*outcome).fault, TransformFault::kTimeout);
    if (feeds) ignore(pool.run(loops, "1", kTime, again), "the pool ends");
  };
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(pool_->run(loops, "1", kTime, again));
  for (int i = 0; i < kRecords; ++i) EXPECT_THAT(outputs(works, "2"), ElementsAre("2"));
  EXPECT_LT(looped, kRecords);
  feeds = false;
  pool_.reset();
}

TEST_F(Pool, ARecordThatEatsMemoryFailsAlone) {
  if (kNoMemoryLimit) GTEST_SKIP() << "the sanitizers' shadow memory is larger than any limit";
  start({.time_max = Duration{60'000}, .memory_max = kMemoryMin});
  const auto program = compile("if . == 3 then [range(1e9)] else . end");
  std::vector<std::future<Result<TransformOutcome>>> answers;
  for (int i = 0; i < 10; ++i) answers.push_back(begin(program, std::to_string(i)));
  for (std::size_t i = 0; i < 10; ++i) {
    const auto outcome = answers[i].get().value();
    if (i == 3) {
      EXPECT_EQ(failure_of(outcome).fault, TransformFault::kMemory) << failure_of(outcome).message;
    } else {
      EXPECT_THAT(outputs_of(outcome), ElementsAre(std::to_string(i)));
    }
  }
}

TEST_F(Pool, DeepRecursionMeetsTheLimitOfMemory) {
  if (kNoMemoryLimit) GTEST_SKIP() << "the sanitizers' shadow memory is larger than any limit";
  start({.time_max = Duration{60'000}, .memory_max = kMemoryMin});
  const auto deep = compile("def f: 1 + f; f");
  EXPECT_EQ(failure_of(run(deep, "1")).fault, TransformFault::kMemory);
  EXPECT_THAT(outputs(compile("."), "1"), ElementsAre("1"));
}

TEST_F(Pool, OutputsHaveALimitInBytesAndInNumber) {
  start({.output_max = 100, .outputs_max = 5});
  EXPECT_EQ(failure_of(run(compile("repeat(1)"), "1")).message, "there are more than 5 outputs");
  EXPECT_EQ(failure_of(run(compile(R"("x" * 101)"), "1")).fault, TransformFault::kTooMuchOutput);
  EXPECT_THAT(outputs(compile("range(5)"), "1"), testing::SizeIs(5));
}

TEST_F(Pool, AWorkerKilledFromOutsideCostsNobodyItsRecord) {
  start({.workers = 2, .time_max = Duration{20'000}});
  const auto program = compile("[range(. * 0; 20000)] | length");
  std::vector<std::future<Result<TransformOutcome>>> answers;
  for (int i = 0; i < 60; ++i) answers.push_back(begin(program, "1"));
  answers.front().wait();
  for (const int pid : pool_->counts().worker_pids) ::kill(pid, SIGKILL);
  for (auto& answer : answers) {
    EXPECT_THAT(outputs_of(answer.get().value()), ElementsAre("20000"));
  }
}

TEST_F(Pool, FaultsOfAProgramNameLineAndColumn) {
  start();
  const auto compiled = try_compile({.main = "1", .event_type = ".a |\n  nothing(1)"}).value();
  const auto& faults = std::get<std::vector<ProgramFault>>(compiled);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults.front(),
            (ProgramFault{ProgramPart::kEventType, 2, 3, "nothing/1 is not defined"}));
}

// X1: an earlier record may have damaged the heap, so a crash counts in a new worker only.
TEST_F(Pool, ARecordThatCrashesJqFailsAlone) {
  // Freeing a value that is nested so deeply overflows libjq's stack.
  start({.workers = 2, .time_max = Duration{60'000}, .memory_max = std::size_t{2} << 30});
  const auto program =
      compile("if . == 3 then reduce range(400000) as $i (1; [.]) == 1 else . end");
  std::vector<std::future<Result<TransformOutcome>>> answers;
  for (int i = 0; i < 10; ++i) answers.push_back(begin(program, std::to_string(i)));
  for (std::size_t i = 0; i < 10; ++i) {
    const auto outcome = answers[i].get().value();
    if (i == 3) {
      EXPECT_EQ(failure_of(outcome).fault, TransformFault::kCrashed);
      EXPECT_THAT(failure_of(outcome).message, HasSubstr("signal "));
    } else {
      EXPECT_THAT(outputs_of(outcome), ElementsAre(std::to_string(i)));
    }
  }
  // Three ends: together, alone, and first in a new worker.
  EXPECT_GE(pool_->counts().workers_ended, 2U);
}

// A worker that says it is ready and then answers with bytes of the wrong kind.
TEST_F(Pool, AReadyWorkerThatAnswersGarbageIsKilledAndTheJobIsTold) {
  const FakeWorker fake(
      "printf '\\005\\000\\000\\000\\004\\001\\000\\000\\000'; head -c 5 >&2; "
      "printf '\\001\\000\\000\\000\\011'; cat >&2");
  start({.workers = 1, .worker = fake.path()});
  const auto compiled = try_compile({.main = "."}).value();
  const auto& faults = std::get<std::vector<ProgramFault>>(compiled);
  EXPECT_THAT(faults.at(0).message, HasSubstr("answered what makes no sense"));
  EXPECT_EQ(pool_->counts().killed_for_garbage, 1U);
}

// Those that a worker has to give up are compiled again when a record comes.
TEST_F(Pool, MoreProgramsThanAWorkerKeeps) {
  start({.workers = 1, .programs_max = 2});
  std::vector<ProgramId> programs;
  for (int i = 0; i < 5; ++i) programs.push_back(compile(base::format(". + {}", i)));
  for (const std::size_t i : {0U, 4U, 0U, 2U, 1U, 3U, 0U}) {
    EXPECT_THAT(outputs(programs[i], "1000"), ElementsAre(std::to_string(1'000 + i)));
  }
  pool_->forget(programs[1]);
  EXPECT_THAT(outputs(programs[3], "1"), ElementsAre("4"));
  EXPECT_EQ(pool_->counts().workers_started, 1U);
}

TEST_F(Pool, WorkersAreLockedIn) {
  start({.workers = 1});
  EXPECT_THAT(outputs(compile("."), "1"), ElementsAre("1"));
  const auto pids = pool_->counts().worker_pids;
  ASSERT_FALSE(pids.empty());
  std::ifstream file(base::format("/proc/{}/status", pids.front()));
  const std::string status{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(status, HasSubstr("\nSeccomp:\t2\n"));
  EXPECT_THAT(status, HasSubstr("\nNoNewPrivs:\t1\n"));
}

// Another hash seed, another address space, the same bytes.
TEST_F(Pool, AnotherWorkerGivesTheSameBytes) {
  const std::string input =
      R"({"zeta":1,"alpha":{"b":2,"a":1},"list":[3,1,2],"t":0.1,"beta":null,"ü":"\u00fc"})";
  std::vector<std::string> first;
  for (int i = 0; i < 5; ++i) {
    start({.workers = 1});
    const auto program = compile(
        "., (.new = now | del(.beta) | .alpha.c = 3), tojson, keys_unsorted, ([.[]] | tojson), "
        "(to_entries | from_entries), (now | todate), group_by(.)?");
    const auto outcome = outputs(program, input);
    if (first.empty()) first = outcome;
    EXPECT_EQ(outcome, first);
    ASSERT_GE(first.size(), 7U) << first.front();
  }
  EXPECT_EQ(first[0],
            R"({"zeta":1,"alpha":{"b":2,"a":1},"list":[3,1,2],"t":0.1,"beta":null,"ü":"ü"})");
  EXPECT_EQ(first[1], R"({"zeta":1,"alpha":{"b":2,"a":1,"c":3},"list":[3,1,2],"t":0.1,"ü":"ü",)"
                      R"("new":1700000000.123})");
  EXPECT_EQ(first[6], R"("2023-11-14T22:13:20Z")");
}

TEST_F(Pool, AMissingWorkerProgramIsToldToEverybody) {
  start({.worker = "/nowhere/hapax-jq"});
  const auto compiled = try_compile({.main = "."});
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().code, Errc::kUnavailable);
  EXPECT_THAT(compiled.error().detail, HasSubstr("/nowhere/hapax-jq"));
}

// What `yes` prints is not a frame.
TEST_F(Pool, AWorkerThatAnswersGarbageIsKilledAndCounted) {
  start({.worker = "/bin/yes"});
  const auto compiled = try_compile({.main = "."});
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().code, Errc::kUnavailable);
  EXPECT_GE(pool_->counts().killed_for_garbage, 1U);
}

TEST_F(Pool, WhatWaitsWhenThePoolEndsIsTold) {
  start({.workers = 1, .time_max = Duration{60'000}});
  auto waiting = begin(compile("def f: f; f"), "1");
  pool_.reset();
  const auto answer = waiting.get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::kShuttingDown);
}

TEST_F(Pool, RefusesWhatDoesNotFit) {
  start({.time_max = Duration{60'000}, .waiting_max = 1'000});
  const auto ignored = [](const Result<TransformOutcome>&) {};
  EXPECT_EQ(pool_->run(ProgramId{77}, "1", kTime, ignored).error().code, Errc::kNotFound);
  const auto program = compile("def f: f; f");
  ASSERT_TRUE(pool_->run(program, "1", kTime, ignored));
  EXPECT_EQ(pool_->run(program, std::string(1'000, '1'), kTime, ignored).error().code,
            Errc::kUnavailable);
  EXPECT_EQ(pool_->run(program, std::string(kInputMax + 1, '1'), kTime, ignored).error().code,
            Errc::kLimitExceeded);
  EXPECT_EQ(pool_->compile({.main = std::string(kProgramMax + 1, ' ')}, {}).error().code,
            Errc::kLimitExceeded);
  pool_->forget(program);
  EXPECT_EQ(pool_->run(program, "1", kTime, ignored).error().code, Errc::kNotFound);
  EXPECT_EQ(TransformPool::start({.workers = 0}).error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace hapax::transform
