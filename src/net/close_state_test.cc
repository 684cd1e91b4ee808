#include "net/close_state.h"

#include <gtest/gtest.h>

namespace hapax::net {
namespace {

TEST(CloseState, OurSidePassesItsStagesInOrder) {
  CloseState state;
  EXPECT_TRUE(state.open());
  EXPECT_TRUE(state.finish());
  EXPECT_FALSE(state.open());
  EXPECT_FALSE(state.finish());
  EXPECT_TRUE(state.linger());
  EXPECT_TRUE(state.lingering());
  EXPECT_FALSE(state.linger());
  EXPECT_TRUE(state.close());
  EXPECT_TRUE(state.closed());
  EXPECT_FALSE(state.lingering());
}

TEST(CloseState, WhatIsClosedStaysClosed) {
  CloseState state;
  EXPECT_TRUE(state.close());
  EXPECT_FALSE(state.open());
  EXPECT_FALSE(state.finish());
  EXPECT_FALSE(state.linger());
  EXPECT_FALSE(state.close());
  EXPECT_TRUE(state.closed());
}

TEST(CloseState, ThePeersEndLeavesOurSideOpen) {
  CloseState state;
  EXPECT_FALSE(state.peer_ended());
  state.end_peer();
  EXPECT_TRUE(state.peer_ended());
  EXPECT_TRUE(state.open());
}

TEST(CloseStateDeathTest, AnOpenConnectionDoesNotLinger) {
  CloseState state;
  EXPECT_DEATH((void)state.linger(), "that finishes lingers");
}

}  // namespace
}  // namespace hapax::net
