#include "resp/commit_reply.h"

#include <gtest/gtest.h>

namespace hapax::resp {
namespace {

// The numbers of all verdicts of the command.
void say_numbers(Replies& replies, std::span<const Verdict> verdicts, Time) {
  std::string text;
  for (const Verdict& verdict : verdicts) {
    text += std::to_string(std::get<Held>(verdict).number.value_or(-1));
  }
  replies.simple(text);
}

Held held(std::int64_t number) { return {.number = number}; }

std::string reply(const Result<Answer>& answer, std::vector<CommitPart> commands,
                  CommitShape shape) {
  Replies replies;
  reply_commit(replies, answer, commands, shape);
  return std::string(replies.text());
}

TEST(CommitReplyTest, EachCommandSaysItsOwnVerdicts) {
  const Answer answer{.committed = true, .verdicts = {held(1), held(2), held(3)}};
  EXPECT_EQ(reply(answer, {{say_numbers, 2}, {nullptr, 0, {}, "+PONG\r\n"}, {say_numbers}},
                  CommitShape::kArray),
            "*3\r\n+12\r\n+PONG\r\n+3\r\n");
  EXPECT_EQ(reply(answer, {{say_numbers, 3}}, CommitShape::kOne), "+123\r\n");
}

// Verdicts of what was staged before.
TEST(CommitReplyTest, VerdictsThatNoCommandHasAreSaidBehindThem) {
  const Answer answer{.committed = true, .verdicts = {held(1), held(2), held(3)}};
  EXPECT_EQ(reply(answer, {{say_numbers}}, CommitShape::kArray), "*3\r\n+1\r\n+2\r\n+3\r\n");
}

TEST(CommitReplyTest, WhatWasRefusedIsToldInsteadOfEverything) {
  const Answer answer{.committed = false,
                      .verdicts = {held(1), Refused{{Errc::kNotFound, "no stream"}}}};
  EXPECT_TRUE(reply(answer, {{say_numbers}, {say_numbers}}, CommitShape::kArray)
                  .starts_with("-EXECABORT Transaction discarded: operation 2 was refused: HX"));
  EXPECT_TRUE(reply(answer, {{say_numbers, 2}}, CommitShape::kOne).starts_with("-ERR HX"));
}

TEST(CommitReplyTest, WhatDidNotHoldIsNull) {
  const Answer answer{.committed = false, .verdicts = {held(1)}};
  EXPECT_EQ(reply(answer, {{say_numbers}}, CommitShape::kArray), "*-1\r\n");
}

TEST(CommitReplyTest, TheWholeIsAMapWhateverBecameOfIt) {
  for (const bool committed : {true, false}) {
    const Answer answer{.committed = committed, .verdicts = {held(1)}};
    const std::string told = reply(answer, {{say_numbers}}, CommitShape::kWhole);
    EXPECT_NE(told.find("committed"), std::string::npos) << told;
    EXPECT_NE(told.find("verdicts"), std::string::npos) << told;
  }
}

TEST(CommitReplyTest, ACommitThatFailedIsAnError) {
  for (const CommitShape shape : {CommitShape::kOne, CommitShape::kArray, CommitShape::kWhole}) {
    EXPECT_TRUE(reply(Error{Errc::kIo, "broken"}, {{say_numbers}}, shape).starts_with("-ERR HX"));
  }
}

}  // namespace
}  // namespace hapax::resp
