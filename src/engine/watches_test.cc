#include "engine/watches.h"

#include <gtest/gtest.h>

#include "engine/rig_test.h"

namespace hapax::engine {
namespace {

class WatchesTest : public EngineRig {
 protected:
  WatchesTest() {
    commit({CreateStream{"s", {}}});
    machine().wake(watches_);
    watch();
  }
  void watch() {
    watches_.watch_stream("s", "c", [this] { ++calls_; });
  }

  Watches watches_;
  int calls_ = 0;
};

// E12: told is what cannot be taken back any more.
TEST_F(WatchesTest, WhoWaitsIsWokenWhenTheFactIsDurable) {
  submit({Append{.stream = "s", .payload = "p"}});
  EXPECT_EQ(calls_, 0);
  ASSERT_TRUE(write().ok());
  EXPECT_EQ(calls_, 1);
  EXPECT_FALSE(watches_.any());
}

TEST_F(WatchesTest, WhatIsRefusedWakesNobody) {
  fill_disk();
  submit({Append{.stream = "s", .payload = "p"}});
  EXPECT_FALSE(write().ok());
  free_disk();
  commit({CreateStream{"other", {}}});
  EXPECT_EQ(calls_, 0);
  commit({Append{.stream = "s", .payload = "p"}});
  EXPECT_EQ(calls_, 1);
}

TEST_F(WatchesTest, EachOfManyIsCalledOnce) {
  watch();
  watches_.watch_stream("s", "other", [this] { calls_ += 10; });
  watches_.watch_stream("t", "", [this] { calls_ += 100; });
  const std::uint64_t gone = watches_.watch_stream("s", "", [this] { calls_ += 1'000; });
  watches_.end(gone);
  commit({Append{.stream = "s", .payload = "p"}, Append{.stream = "s", .payload = "q"}});
  EXPECT_EQ(calls_, 12);
  watches_.tell_all();
  EXPECT_EQ(calls_, 112);
  EXPECT_FALSE(watches_.any());
}

// A fact about one consumer wakes those who wait for it, and nobody else.
TEST_F(WatchesTest, ConsumersAreWokenForThemselves) {
  commit({Append{.stream = "s", .payload = "p"}});
  calls_ = 0;
  watch();
  watches_.watch_stream("s", "", [this] { calls_ += 10; });
  Call& received = commit({Receive{"s", "c", 1, Duration{1'000}, "o"}});
  EXPECT_EQ(calls_, 1);  // It was made.
  watch();
  const Delivery& held = std::get<Received>(received.verdict()).deliveries.at(0);
  commit({Nack{"s", "c", {held.record.sequence, held.token}}});
  EXPECT_EQ(calls_, 2);
}

}  // namespace
}  // namespace hapax::engine
