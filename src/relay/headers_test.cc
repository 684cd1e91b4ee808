#include "relay/headers.h"

#include <gtest/gtest.h>

namespace hapax::relay {
namespace {

TEST(ReplayHeader, TellsHowOftenARecordWasRedriven) {
  Outgoing record;
  record.headers = {{"traceparent", "00-ab"}, {"Hapax-Replay", "2"}};
  take_replay_header(record);
  EXPECT_EQ(record.replay, 2U);
  EXPECT_EQ(record.headers, (Headers{{"traceparent", "00-ab"}}));
}

TEST(ReplayHeader, CountsAsNoneIfItIsNotANumber) {
  for (const char* one : {"", "x", "1x", "-1", "99999999999999"}) {
    Outgoing record;
    record.headers = {{"hapax-replay", one}};
    take_replay_header(record);
    EXPECT_EQ(record.replay, 0U) << one;
    EXPECT_TRUE(record.headers.empty());
  }
}

}  // namespace
}  // namespace hapax::relay
