#include "resp/multi.h"

#include <gtest/gtest.h>

namespace hapax::resp {
namespace {

void say_nothing(Replies&, std::span<const Verdict>, Time) {}

CommitPart plain(std::vector<std::string> words) { return {nullptr, 0, std::move(words), {}}; }

Status add_op(Multi& multi, std::size_t bytes) {
  multi.request().ops.emplace_back(Get{"a", false});
  return multi.add({say_nothing}, bytes);
}

TEST(MultiTest, CommandsWaitInTheirOrderWithTheirOperations) {
  Multi multi;
  EXPECT_TRUE(multi.request().ops.empty());
  EXPECT_TRUE(add_op(multi, 10));
  EXPECT_FALSE(multi.has_others_than_ops());
  EXPECT_TRUE(multi.add(plain({"PING"}), 10));
  EXPECT_TRUE(multi.has_others_than_ops());
  EXPECT_EQ(multi.shared()->ops.size(), 1U);
  ASSERT_EQ(multi.commands().size(), 2U);
  EXPECT_TRUE(multi.commands()[0].is_op());
  EXPECT_EQ(multi.commands()[1].words, std::vector<std::string>{"PING"});
}

TEST(MultiTest, WhatIsRefusedSpoilsItAndKeepsNothing) {
  Multi multi;
  EXPECT_TRUE(add_op(multi, 10));
  multi.tell_whole();
  multi.refuse();
  EXPECT_TRUE(multi.broken());
  EXPECT_TRUE(multi.whole());  // HX.COMMIT was said all the same.
  EXPECT_TRUE(multi.request().ops.empty());
  EXPECT_TRUE(multi.commands().empty());
  EXPECT_TRUE(add_op(multi, 10));
  EXPECT_TRUE(multi.request().ops.empty());
  EXPECT_TRUE(multi.commands().empty());
}

TEST(MultiTest, OnceBrokenOffItTakesCommandsAndKeepsNone) {
  Multi multi;
  EXPECT_TRUE(add_op(multi, 10));
  multi.break_off();
  EXPECT_TRUE(multi.broken());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(add_op(multi, limits::kCommitBytesMax - 10)) << i;
  EXPECT_TRUE(multi.commands().empty());
}

TEST(MultiTest, AsManyCommandsAndOperationsWaitAsMakeOneCommit) {
  Multi commands;
  for (std::size_t i = 0; i < limits::kCommitOpsMax; ++i) {
    ASSERT_TRUE(commands.add(plain({}), 0)) << i;
  }
  EXPECT_EQ(commands.add(plain({}), 0).error().code, Errc::kLimitExceeded);

  Multi ops;
  ops.request().ops.resize(limits::kCommitOpsMax);
  EXPECT_TRUE(ops.add({say_nothing, limits::kCommitOpsMax}, 0));
  const Status more = add_op(ops, 0);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error(), too_many_ops(limits::kCommitOpsMax + 1));
}

TEST(MultiTest, AsManyBytesWaitAsMakeOneCommit) {
  Multi multi;
  EXPECT_TRUE(multi.add(plain({}), limits::kCommitBytesMax));
  EXPECT_TRUE(add_op(multi, 600));  // An operation adds to the limit.
  const Status more = multi.add(plain({}), 1);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Errc::kLimitExceeded);
  EXPECT_NE(more.error().detail.find("commit in bytes"), std::string::npos);

  Multi words;  // Words take room, too.
  EXPECT_FALSE(words.add(plain({"PING"}), limits::kCommitBytesMax));
}

}  // namespace
}  // namespace hapax::resp
