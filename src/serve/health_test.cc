#include "serve/health.h"

#include <gtest/gtest.h>

namespace hapax::serve {
namespace {

// The store answers before the doors are open; who believes it then is turned away.
TEST(Health, IsNotReadyBeforeRequestsAreTaken) {
  Health health;
  health.look_at(Statistics{});
  EXPECT_TRUE(health.trouble());
  health.opened();
  EXPECT_TRUE(health.trouble());
  health.look_at(Statistics{});
  EXPECT_FALSE(health.trouble());
}

// The store is looked at beside the drain, and is well.
TEST(Health, IsNotReadyAgainOnceItDrains) {
  Health health;
  health.opened();
  health.look_at(Statistics{});
  health.draining();
  health.look_at(Statistics{});
  EXPECT_TRUE(health.trouble());
}

TEST(Health, FollowsTheStore) {
  Health health;
  health.opened();
  health.look_at(Error{Errc::kUnavailable, "away"});
  EXPECT_TRUE(health.trouble());
  health.look_at(Statistics{});
  EXPECT_FALSE(health.trouble());
}

}  // namespace
}  // namespace hapax::serve
