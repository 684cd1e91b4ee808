#include "net/receive_buffer.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace hapax::net {
namespace {

constexpr std::size_t kReadMax = std::size_t{1} << 20;

void receive(ReceiveBuffer& buffer, std::string_view bytes) {
  const std::span<char> space = buffer.lend(kReadMax);
  ASSERT_LE(bytes.size(), space.size());
  std::ranges::copy(bytes, space.begin());
  buffer.take_back(bytes.size());
}

void fill(ReceiveBuffer& buffer) { buffer.take_back(buffer.lend(kReadMax).size()); }

TEST(ReceiveBuffer, WhatWasNotDroppedComesFirst) {
  ReceiveBuffer buffer;
  receive(buffer, "one two");
  buffer.drop(4);
  EXPECT_EQ(buffer.bytes(), "two");
  receive(buffer, " three");
  EXPECT_EQ(buffer.bytes(), "two three");
  buffer.drop(0);
  EXPECT_EQ(buffer.bytes(), "two three");
  buffer.drop(9);
  EXPECT_EQ(buffer.bytes(), "");
}

TEST(ReceiveBuffer, AReadThatFailsLeavesTheBytesAlone) {
  ReceiveBuffer buffer;
  receive(buffer, "one");
  EXPECT_FALSE(buffer.lend(kReadMax).empty());
  EXPECT_TRUE(buffer.lent());
  buffer.take_back(0);
  EXPECT_FALSE(buffer.lent());
  EXPECT_EQ(buffer.bytes(), "one");
}

TEST(ReceiveBuffer, APeerThatSendsMuchGetsLargerReads) {
  ReceiveBuffer buffer;
  std::size_t size = ReceiveBuffer::kReadBytes;
  for (int i = 0; i < 4; ++i) {
    const std::span<char> space = buffer.lend(kReadMax);
    EXPECT_EQ(space.size(), size);
    buffer.take_back(space.size());
    buffer.drop(space.size());
    size = std::min(2 * size, ReceiveBuffer::kReadBytesMax);
  }
  receive(buffer, "little");
  buffer.drop(6);
  EXPECT_GE(buffer.lend(kReadMax).size(), ReceiveBuffer::kReadBytes);
}

// So that a large message is moved a few times, not once for each read.
TEST(ReceiveBuffer, SpaceDoublesWithAMessageThatIsNotComplete) {
  ReceiveBuffer buffer;
  while (buffer.bytes().size() < kReadMax) fill(buffer);
  const std::span<char> space = buffer.lend(kReadMax);
  EXPECT_EQ(space.size(), kReadMax);
  buffer.take_back(space.size());
  EXPECT_EQ(buffer.lend(kReadMax).size(), kReadMax);
}

TEST(ReceiveBuffer, MemoryForSomethingLargeIsGivenBack) {
  ReceiveBuffer buffer;
  while (buffer.bytes().size() <= ReceiveBuffer::kKeptBytesMax) fill(buffer);
  buffer.drop(1);
  EXPECT_GT(buffer.memory(), ReceiveBuffer::kKeptBytesMax);
  buffer.drop(buffer.bytes().size());
  EXPECT_LT(buffer.memory(), ReceiveBuffer::kKeptBytesMax);
}

TEST(ReceiveBuffer, AtTheNextReadMemoryIsThatOfAQuietPeer) {
  ReceiveBuffer buffer;
  while (buffer.bytes().size() <= ReceiveBuffer::kReadBytesMax) fill(buffer);
  receive(buffer, "little");
  buffer.drop(buffer.bytes().size());
  EXPECT_EQ(buffer.lend(kReadMax).size(), ReceiveBuffer::kReadBytes);
}

TEST(ReceiveBufferDeathTest, NobodyTouchesABufferThatIsLent) {
  ReceiveBuffer buffer;
  EXPECT_DEATH(buffer.take_back(0), "fills the space it was lent");
  const std::size_t space = buffer.lend(kReadMax).size();
  EXPECT_DEATH((void)buffer.lend(kReadMax), "one read at a time");
  EXPECT_DEATH((void)buffer.bytes(), "being written");
  EXPECT_DEATH(buffer.drop(0), "only bytes that were read");
  EXPECT_DEATH(buffer.take_back(space + 1), "fills the space it was lent");
}

// What a session says that it took is what it was offered.
TEST(ReceiveBufferDeathTest, OnlyBytesThatWereReadAreDropped) {
  ReceiveBuffer buffer;
  receive(buffer, "one");
  EXPECT_DEATH(buffer.drop(4), "only bytes that were read");
}

}  // namespace
}  // namespace hapax::net
