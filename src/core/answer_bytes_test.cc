// What one commit may answer with: more than that would be held in memory at once, however few
// bytes asked for it.
#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/test_store.h"

namespace hapax::core {
namespace {

class AnswerBytes : public testing::Test {
 protected:
  AnswerBytes() { store_.begin(Duration{1}); }

  Answer commit(const std::vector<Op>& ops, Mode mode, Detail detail = Detail::kFull) {
    Commit commit;
    commit.ops = ops;
    commit.mode = mode;
    commit.detail = detail;
    return std::get<Answer>(store_.commit(commit));
  }
  void settle(std::string_view key, const std::string& body) {
    const Claim claim{.scope = "s", .key = key, .owner = "o"};
    const Answer opened = commit({claim}, Mode::kEach);
    const Fence fence = std::get<Claimed>(opened.verdicts.front()).fence;
    commit({Settle{.scope = "s", .key = key, .fence = fence, .result = {200, "", body}}},
           Mode::kEach);
  }
  static Errc refusal(const Verdict& verdict) { return std::get<Refused>(verdict).error.code; }

  rig::MemoryStore store_;
  const std::string value_ = std::string(limits::kRegisterBytesMax, 'v');
  const std::size_t fit_ = limits::kAnswerBytesMax / limits::kRegisterBytesMax;
};

TEST_F(AnswerBytes, EachOnItsOwnThoseThatDoNotFitAreRefused) {
  commit({Set{.name = "r", .value = value_, .mode = SetMode::kAlways}}, Mode::kEach);
  std::vector<Op> ops(fit_ + 1, Get{"r"});
  ops.emplace_back(Unset{"r", true});
  ops.emplace_back(Get{"r", false});
  const Answer answer = commit(ops, Mode::kEach);
  for (std::size_t i = 0; i < fit_; ++i) ASSERT_TRUE(holds(answer.verdicts[i])) << i;
  EXPECT_EQ(refusal(answer.verdicts[fit_]), Errc::kUnavailable);
  EXPECT_EQ(refusal(answer.verdicts[fit_ + 1]), Errc::kUnavailable);
  EXPECT_TRUE(std::get<Held>(answer.verdicts[fit_ + 2]).applied);  // It was not removed.
}

TEST_F(AnswerBytes, AllOrNothingTheCommitIsRefused) {
  commit({Set{.name = "r", .value = value_, .mode = SetMode::kAlways}}, Mode::kEach);
  std::vector<Op> ops(fit_, Get{"r"});
  ops.front() = Set{.name = "other", .value = "x", .mode = SetMode::kAlways};
  ops.emplace_back(Get{"r"});
  EXPECT_TRUE(commit(ops, Mode::kAtomic).committed);
  ops.front() = Set{.name = "third", .value = "x", .mode = SetMode::kAlways};
  ops.emplace_back(Get{"r"});
  const Answer answer = commit(ops, Mode::kAtomic);
  EXPECT_FALSE(answer.committed);
  EXPECT_EQ(refusal(answer.verdicts.back()), Errc::kLimitExceeded);
  EXPECT_FALSE(std::get<Held>(commit({Get{"third"}}, Mode::kEach).verdicts.front()).applied);
}

// How large a result is, nobody knows who asks. So it costs nobody else an answer.
TEST_F(AnswerBytes, LargeResultsTakeNoRoomOfTheOthers) {
  settle("large", std::string(std::size_t{1} << 20, 'b'));
  settle("small", "b");
  const std::size_t fit = limits::kAnswerBytesMax >> 20;
  std::vector<Op> ops(2 * fit, Claim{.scope = "s", .key = "large", .owner = "o"});
  ops.emplace_back(Claim{.scope = "s", .key = "small", .owner = "o"});
  ops.emplace_back(Set{.name = "r", .value = value_, .mode = SetMode::kAlways});
  ops.emplace_back(Get{"r"});
  const Answer answer = commit(ops, Mode::kEach);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < 2 * fit; ++i) {
    if (!std::holds_alternative<Refused>(answer.verdicts[i])) continue;
    EXPECT_EQ(refusal(answer.verdicts[i]), Errc::kUnavailable);
    ++refused;
  }
  EXPECT_EQ(refused, fit + 1);  // A result is stored with some bytes more.
  EXPECT_TRUE(std::holds_alternative<DuplicateClaim>(answer.verdicts[2 * fit]));
  EXPECT_TRUE(std::get<Held>(answer.verdicts.back()).value.has_value());
}

TEST_F(AnswerBytes, WhatIsLeftOutOfABriefAnswerTakesNoRoom) {
  settle("large", std::string(std::size_t{1} << 20, 'b'));
  const std::size_t fit = limits::kAnswerBytesMax >> 20;
  const std::vector<Op> ops(2 * fit, Claim{.scope = "s", .key = "large", .owner = "o"});
  const Answer answer = commit(ops, Mode::kEach, Detail::kBrief);
  for (const Verdict& verdict : answer.verdicts) {
    ASSERT_TRUE(std::holds_alternative<DuplicateClaim>(verdict));
  }
}

class ReceiveBytes : public AnswerBytes {
 protected:
  void append(std::size_t bytes, std::size_t count) {
    const std::string payload(bytes, 'p');
    std::vector<Op> ops = {CreateStream{"s", {.record_bytes_max = limits::kRecordBytesMax}}};
    ops.insert(ops.end(), count, Append{.stream = "s", .payload = payload});
    commit(ops, Mode::kEach);
  }
  // Each by a consumer of its own.
  std::vector<Op> receives(std::size_t count, std::uint32_t max) {
    std::vector<Op> ops;
    for (std::size_t i = 0; i < count; ++i) {
      ops.emplace_back(Receive{"s", names_.emplace_back("c" + std::to_string(i)), max});
    }
    return ops;
  }
  static std::size_t handed_out(const Verdict& verdict) {
    return std::get<Received>(verdict).deliveries.size();
  }

  std::deque<std::string> names_;
};

TEST_F(ReceiveBytes, ABriefAnswerHasFewOfThem) {
  append(limits::kBriefReceiveBytesMax / 3, 9);
  EXPECT_EQ(handed_out(commit(receives(1, 9), Mode::kEach, Detail::kBrief).verdicts.front()), 2U);
  EXPECT_EQ(handed_out(commit(receives(1, 9), Mode::kEach).verdicts.front()), 7U);
}

TEST_F(ReceiveBytes, ALargeRecordThatIsLeftOutTakesNoRoom) {
  append(std::size_t{4} << 20, 2);
  const Answer answer = commit(receives(20, 2), Mode::kEach, Detail::kBrief);
  for (const Verdict& verdict : answer.verdicts) EXPECT_EQ(handed_out(verdict), 1U);
}

TEST_F(ReceiveBytes, AFullAnswerCountsAll) {
  append(std::size_t{4} << 20, 1);
  const std::vector<Op> ops = receives(9, 1);
  Answer answer = commit(ops, Mode::kEach);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(std::get<Received>(answer.verdicts[i]).deliveries.size(), 1U) << i;
  }
  EXPECT_EQ(refusal(answer.verdicts[8]), Errc::kUnavailable);
  // Nothing was handed out: it is there for the next one.
  answer = commit({ops[8]}, Mode::kEach);
  EXPECT_EQ(std::get<Received>(answer.verdicts[0]).deliveries.size(), 1U);
}

}  // namespace
}  // namespace hapax::core
