#include "resp/reply_queue.h"

#include <gtest/gtest.h>

namespace hapax::resp {
namespace {

void say_held(Replies& replies, std::span<const Verdict> verdicts, Time) {
  replies.integer(std::get<Held>(verdicts.front()).number.value_or(-1));
}

class ReplyQueueTest : public testing::Test {
 protected:
  void answer(std::uint64_t ticket, std::string_view word) {
    queue_.replies().simple(word);
    queue_.answer(ticket);
  }
  void answer_now(std::string_view word) {
    queue_.replies().simple(word);
    queue_.answer();
  }
  void leave_out(std::uint64_t ticket, std::string_view key) {
    queue_.leave_out(ticket, access::LeftOut(Claim{.scope = "s", .key = key},
                                             DuplicateClaim{.left_out = true}, Time{}));
  }
  // What is due, and has left now.
  std::string send() {
    EXPECT_EQ(queue_.text().size(), queue_.due());
    std::string text(queue_.text());
    queue_.sent();
    EXPECT_EQ(queue_.due(), 0U);
    return text;
  }

  ReplyQueue queue_;
};

TEST_F(ReplyQueueTest, AnAnswerIsDueAtOnceIfNobodyWaitsBeforeIt) {
  answer_now("a");
  answer_now("b");
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(send(), "+a\r\n+b\r\n");
}

TEST_F(ReplyQueueTest, AnswersAreDueInTheOrderOfTheirCommands) {
  const auto first = queue_.expect(0);
  const auto second = queue_.expect(0);
  answer_now("c");
  const auto fourth = queue_.expect(0);
  EXPECT_EQ(queue_.waiting(), 4U);
  answer(fourth, "d");
  answer(second, "b");
  EXPECT_EQ(send(), "");
  answer(first, "a");
  EXPECT_EQ(send(), "+a\r\n+b\r\n+c\r\n+d\r\n");
  EXPECT_TRUE(queue_.empty());
}

TEST_F(ReplyQueueTest, WhatIsDueStaysBeforeWhatIsWrittenForLater) {
  const auto first = queue_.expect(0);
  const auto second = queue_.expect(0);
  const auto third = queue_.expect(0);
  answer(first, "a");
  answer(third, "c");
  EXPECT_EQ(send(), "+a\r\n");
  EXPECT_EQ(queue_.first(), second);
  answer(second, "b");
  EXPECT_EQ(send(), "+b\r\n+c\r\n");
}

TEST_F(ReplyQueueTest, AVerdictIsSaidAsItsCommandWanted) {
  const auto first = queue_.expect(0, say_held);
  const auto second = queue_.expect(0, say_held);
  queue_.tell(second, Held{.number = 2}, Time{});
  queue_.tell(first, Held{.number = 1}, Time{});
  EXPECT_EQ(send(), ":1\r\n:2\r\n");
}

TEST_F(ReplyQueueTest, BytesArePromisedUntilTheirTurnHasCome) {
  const auto first = queue_.expect(100);
  const auto second = queue_.expect(20);
  EXPECT_EQ(queue_.promised(), 120U);
  answer_now("abc");  // It is known: six bytes.
  EXPECT_EQ(queue_.promised(), 126U);
  answer(second, "b");
  EXPECT_EQ(queue_.promised(), 126U);
  answer(first, "a");
  EXPECT_EQ(queue_.promised(), 0U);
}

TEST_F(ReplyQueueTest, WhatWasLeftOutIsReadOneByOne) {
  const auto first = queue_.expect(0, say_held);
  const auto second = queue_.expect(0, say_held);
  EXPECT_FALSE(queue_.first_is_left_out());
  leave_out(second, "b");
  EXPECT_FALSE(queue_.first_is_left_out());
  leave_out(first, "a");
  ASSERT_TRUE(queue_.first_is_left_out());
  EXPECT_EQ(queue_.take_left_out()->key, "a");
  EXPECT_FALSE(queue_.first_is_left_out());  // It is being read.
  queue_.tell(queue_.first(), Held{.number = 1}, Time{});
  ASSERT_TRUE(queue_.first_is_left_out());
  EXPECT_EQ(queue_.take_left_out()->key, "b");
  EXPECT_EQ(queue_.take_left_out(), nullptr);
}

TEST_F(ReplyQueueTest, WhatIsTakenBackWasNeverDue) {
  answer_now("a");
  const std::size_t before = queue_.due();
  answer_now("b");
  EXPECT_EQ(queue_.take_back(before), "+b\r\n");
  answer_now("c");
  EXPECT_EQ(send(), "+a\r\n+c\r\n");
}

}  // namespace
}  // namespace hapax::resp
