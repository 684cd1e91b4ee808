#include "serve/descriptors.h"

#include <gtest/gtest.h>

namespace hapax::serve {
namespace {

TEST(Descriptors, ConnectionsLeaveEnoughForTheStore) {
  EXPECT_EQ(connections_within(65'536), 65'536U - 384);
  EXPECT_EQ(connections_within(1'024), 1'024U - 384);
}

// The store keeps fewer segments open than it could, but some connections there are always.
TEST(Descriptors, OfFewDescriptorsConnectionsGetAQuarter) {
  EXPECT_EQ(connections_within(256), 64U);
  EXPECT_EQ(connections_within(1), 1U);
}

}  // namespace
}  // namespace hapax::serve
