// What a consumer is not done with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/consumers_harness.h"

namespace hapax::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Unacked : public testing::Test {
 protected:
  UnackedPage list(std::string_view consumer = "c", Sequence from = Sequence{1},
                   std::uint32_t max = 100) {
    const Consumer* known = store.state.find_consumer(store.stream(), consumer);
    return list_unacked(store.stream(), known,
                        {.stream = "orders", .consumer = consumer, .from = from, .max = max});
  }
  std::vector<std::uint64_t> listed(std::string_view consumer = "c") {
    std::vector<std::uint64_t> all;
    for (const UnackedRecord& each : list(consumer).records) all.push_back(each.sequence.value);
    return all;
  }
  void append(int count) {
    for (int i = 0; i < count; ++i) store.append();
  }

  ConsumersHarness store;
};

TEST_F(Unacked, TellsWhereEachRecordIs) {
  store.append("g");
  store.append("g");
  append(4);
  const auto held = store.receive("c", 3);  // 1, 3 and 4: 2 waits behind 1.
  ASSERT_EQ(held.size(), 3U);
  store.nack("c", receipt_of(held[1]), Duration{500}, "HTTP 503");
  store.ack("c", receipt_of(held[2]));
  const UnackedPage page = list();
  ASSERT_EQ(page.records.size(), 5U);
  EXPECT_EQ(page.next, Sequence{0});
  const UnackedRecord& first = page.records[0];
  EXPECT_EQ(first.state, UnackedState::kInFlight);
  EXPECT_EQ(first.owner, "w1");
  EXPECT_EQ(first.attempts, 1U);
  EXPECT_EQ(first.until, store.now + Duration{1'000});
  const UnackedRecord& parked = page.records[1];
  EXPECT_EQ(parked.state, UnackedState::kParked);
  EXPECT_EQ(parked.behind, Sequence{1});
  const UnackedRecord& nacked = page.records[2];
  EXPECT_EQ(nacked.sequence, Sequence{3});
  EXPECT_EQ(nacked.state, UnackedState::kWaiting);
  EXPECT_EQ(nacked.reason, "HTTP 503");
  EXPECT_EQ(nacked.since, store.now);
  EXPECT_EQ(nacked.until, store.now + Duration{500});
  EXPECT_EQ(page.records[3].sequence, Sequence{5});
  EXPECT_EQ(page.records[3].state, UnackedState::kNew);
}

TEST_F(Unacked, AConsumerThatIsNotThereHasEverythingBeforeIt) {
  append(2);
  EXPECT_THAT(listed("nobody"), ElementsAre(1, 2));
}

TEST_F(Unacked, WhatIsForOthersOrGoneIsNotListed) {
  ASSERT_TRUE(is_done(store.create("other", {.attempts_max = 1})));
  append(3);
  for (const Delivery& held : store.receive("other", 1)) {
    store.nack("other", receipt_of(held), Duration{0}, "bad");
  }
  ASSERT_EQ(store.redrive(Sequence{1}), Verdict{Appended{Sequence{4}}});
  EXPECT_THAT(listed(), ElementsAre(1, 2, 3));
  EXPECT_THAT(listed("other"), ElementsAre(2, 3, 4));
  store.run(Trim{"orders", Sequence{3}});
  EXPECT_THAT(listed(), ElementsAre(3));
  // Records that were taken out of the middle are passed over.
  EXPECT_EQ(store.stream("orders.dead").first, Sequence{2});
}

TEST_F(Unacked, PagesAreBounded) {
  append(2'500);
  const UnackedPage page = list("c", Sequence{1}, 10);
  EXPECT_EQ(page.records.size(), 10U);
  EXPECT_EQ(page.next, Sequence{11});
  EXPECT_THAT(list("c", Sequence{2'501}).records, IsEmpty());
  // However many it passes over, it looks no further than a receive.
  ASSERT_TRUE(is_done(store.create("other", {.attempts_max = 1})));
  for (const Delivery& held : store.receive("other", 2'500)) {
    store.nack("other", receipt_of(held), Duration{0}, "bad");
  }
  for (std::uint64_t at = 1; at <= 2'500; ++at) store.redrive(Sequence{at});
  const UnackedPage passing = list("c", Sequence{2'501}, 10);
  EXPECT_THAT(passing.records, IsEmpty());
  EXPECT_EQ(passing.next, Sequence{2'501 + 1'160});
}

}  // namespace
}  // namespace hapax::core
