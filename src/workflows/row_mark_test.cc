#include "workflows/row_mark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hapax/limits.h>

#include "base/format.h"
#include "signing/delivery_key.h"

namespace hapax::workflows {
namespace {

using delivery::Outgoing;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

Outgoing row() {
  Outgoing row;
  row.id = "o 1:x";
  row.type = "OrderCreated";
  row.key = "c1";
  row.payload = "tea";
  row.headers = {{"traceparent", "00-ab"}};
  row.correlation_id = "call-7";
  row.time = time_from_ms(1'700'000'000'123);
  row.replay = 2;
  return row;
}

TEST(RowMark, SaysWhichRowItIsAndWhatARecordCannotSay) {
  Outgoing marked = row();
  ASSERT_TRUE(mark_row(marked, "uid", "hapax.outbox"));
  const signing::OutboxOrigin origin{"uid", "hapax.outbox", "o 1:x"};
  EXPECT_EQ(marked.id, signing::DeliveryKey::make(origin)->text());
  EXPECT_EQ(marked.key, "c1");
  const auto read = read_row(marked.headers);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->mark.uid, "uid");
  EXPECT_EQ(read->mark.outbox, "hapax.outbox");
  EXPECT_EQ(read->mark.id, "o 1:x");
  EXPECT_EQ(read->mark.time_ms, 1'700'000'000'123);
  EXPECT_EQ(read->mark.replay, 2U);
  EXPECT_THAT(read->headers,
              ElementsAre(Pair("event_type", "OrderCreated"), Pair("correlation_id", "call-7"),
                          Pair("traceparent", "00-ab")));
}

// A repetition must be the same record, whatever else has become of the row.
TEST(RowMark, IsTheSameEveryTime) {
  Outgoing first = row();
  Outgoing again = row();
  again.attempt = 7;
  again.place = 3;
  ASSERT_TRUE(mark_row(first, "uid", "o") && mark_row(again, "uid", "o"));
  EXPECT_EQ(first.id, again.id);
  EXPECT_EQ(first.headers, again.headers);
}

TEST(RowMark, HasRoomForAsManyHeadersAsARowHas) {
  Outgoing marked = row();
  for (int i = 0; i < 100; ++i) marked.headers.emplace_back(base::format("h{}", i), "a\nb: 3:x");
  const auto before = marked.headers;
  ASSERT_TRUE(mark_row(marked, "uid", "o"));
  EXPECT_EQ(marked.headers.size(), limits::kHeadersMax);
  const auto read = read_row(marked.headers);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->headers.size(), before.size() + 2);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), read->headers.begin() + 2));
}

TEST(RowMark, IsTakenOffWhenTheRecordIsRead) {
  Outgoing marked = row();
  ASSERT_TRUE(mark_row(marked, "uid", "o"));
  Outgoing read;
  read.headers = marked.headers;
  read.replay = 1;
  EXPECT_EQ(route_of_rows({})(read), 0U);
  EXPECT_EQ(read.time, time_from_ms(1'700'000'000'123));
  EXPECT_EQ(read.replay, 3U);
  EXPECT_TRUE(read.flaw.empty());
  EXPECT_EQ(read.headers.front().first, "event_type");
  EXPECT_EQ(route_of_rows([](Outgoing&) { return std::nullopt; })(marked), std::nullopt);
}

TEST(RowMark, IsNotWhatOthersWrote) {
  const std::vector<std::vector<std::pair<std::string, std::string>>> all{
      {}, {{"other", "x"}}, {{"hapax-row", "x"}}, {{"hapax-row", "3:uid1:u"}}};
  for (const auto& headers : all) {
    const auto read = read_row(headers);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().detail, HasSubstr("not put there by its workflow"));
  }
  Outgoing stranger;
  EXPECT_EQ(route_of_rows({})(stranger), 0U);
  EXPECT_THAT(stranger.flaw, HasSubstr("not put there"));
}

}  // namespace
}  // namespace hapax::workflows
