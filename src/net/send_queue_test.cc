#include "net/send_queue.h"

#include <gtest/gtest.h>

namespace hapax::net {
namespace {

TEST(SendQueue, BytesLeaveInTheirOrder) {
  SendQueue queue;
  queue.append("one ");
  queue.append("two ");
  EXPECT_EQ(queue.front(), "one two ");
  queue.append("three");
  EXPECT_EQ(queue.size(), 13U);
  queue.sent(4);
  EXPECT_EQ(queue.front(), "two ");
  queue.sent(4);
  EXPECT_EQ(queue.front(), "three");
  queue.sent(5);
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_EQ(queue.front(), "");
  EXPECT_EQ(queue.sent_total(), 13U);
}

// A write that is under way holds their address.
TEST(SendQueue, BytesThatLeaveStayWhereTheyAre) {
  SendQueue queue;
  queue.append(std::string(100, 'a'));
  const char* const begin = queue.front().data();
  queue.append(std::string(std::size_t{1} << 20, 'b'));
  EXPECT_EQ(queue.front().data(), begin);
  queue.sent(1);
  EXPECT_EQ(queue.front().data(), begin + 1);
  EXPECT_EQ(queue.front(), std::string(99, 'a'));
}

TEST(SendQueue, SmallMessagesUseTheSameMemoryAgain) {
  SendQueue queue;
  const auto pass = [&] {
    queue.append(std::string(1'000, 'x'));
    queue.sent(queue.front().size());
  };
  pass();
  pass();
  const std::size_t memory = queue.memory();
  for (int i = 0; i < 100; ++i) pass();
  EXPECT_EQ(queue.memory(), memory);
}

TEST(SendQueue, MemoryForSomethingLargeIsGivenBackOnceAllHasLeft) {
  SendQueue queue;
  queue.append(std::string(SendQueue::kKeptBytesMax + 1, 'x'));
  EXPECT_EQ(queue.front().size(), SendQueue::kKeptBytesMax + 1);
  queue.append(std::string(SendQueue::kKeptBytesMax + 1, 'y'));
  queue.sent(queue.front().size());
  EXPECT_GT(queue.memory(), 2 * SendQueue::kKeptBytesMax);
  queue.sent(queue.front().size());
  EXPECT_LT(queue.memory(), SendQueue::kKeptBytesMax);
}

TEST(SendQueue, TheLoopIsAskedOnceForEachFlush) {
  SendQueue queue;
  EXPECT_TRUE(queue.ask_for_flush());
  EXPECT_FALSE(queue.ask_for_flush());
  EXPECT_TRUE(queue.begin_flush());
  EXPECT_TRUE(queue.ask_for_flush());
}

TEST(SendQueue, TheLoopLeavesACarrierThatSendsAlone) {
  SendQueue queue;
  queue.carrier_begins();
  EXPECT_TRUE(queue.ask_for_flush());
  EXPECT_FALSE(queue.begin_flush());
  EXPECT_TRUE(queue.ask_for_flush());
  queue.carrier_is_ready();
  EXPECT_TRUE(queue.begin_flush());
}

TEST(SendQueueDeathTest, MoreThanTheFrontCannotLeave) {
  SendQueue queue;
  queue.append("one");
  EXPECT_DEATH(queue.sent(1), "only bytes of front");
}

TEST(SendQueueDeathTest, ACarrierHasOneWriteUnderWay) {
  SendQueue queue;
  EXPECT_DEATH(queue.carrier_is_ready(), "only a write that was under way");
  queue.carrier_begins();
  EXPECT_DEATH(queue.carrier_begins(), "one write under way");
}

}  // namespace
}  // namespace hapax::net
