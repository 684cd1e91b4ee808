#include "delivery/stream_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delivery/stream_stock_test.h"
#include "sim/clock.h"

namespace hapax::delivery {
namespace {

using Kind = Settlement::Kind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class StreamSourceTest : public testing::Test {
 protected:
  StreamSourceTest() { make_stream(); }

  void make_stream() { run(CreateStream{"orders", {}}); }
  void run(const Op& op) {
    const Answer answer = store_.commit({.ops = {&op, 1}}).value();
    ASSERT_TRUE(holds(answer.verdicts.front())) << word_of(answer.verdicts.front());
  }
  void append(const std::string& id, const std::string& group = {}) {
    Append append{.stream = "orders", .payload = id, .id = id};
    if (!group.empty()) append.group = group;
    run(append);
  }
  Hand take(std::vector<Settlement> settled = {}, std::uint32_t room = 10) {
    return source_.take({.settled = settled, .room = room, .lease = Duration{10'000}}).value();
  }
  Handout only(Hand hand) {
    EXPECT_THAT(hand.records, SizeIs(1));
    return std::move(hand.records.front());
  }
  [[nodiscard]] std::map<std::string, std::string> dead() {
    std::map<std::string, std::string> all;
    const core::Stream* stream = store_.rules.state.find_stream("erp.dead");
    if (stream == nullptr) return all;
    for (Sequence at = stream->first; at <= stream->last; ++at.value) {
      const Record record = store_.record("erp.dead", at);
      all.emplace(record.id, record.lineage->reason);
    }
    return all;
  }
  [[nodiscard]] std::size_t registers() const { return store_.rules.state.registers.size(); }
  [[nodiscard]] static StreamSourceSettings settings() {
    StreamSourceSettings settings = stream_of_world("p1");
    settings.give_up_after = Duration{60'000};
    return settings;
  }

  sim::SimClock clock_;
  RuleStore store_{clock_};
  StreamSource source_{store_, clock_, settings(), [](const Record& record, std::uint64_t uid) {
                         return std::to_string(uid) + "/" + record.id;
                       }};
};

TEST_F(StreamSourceTest, WhatIsDeliveredDoesNotComeAgain) {
  append("a");
  const Handout first = only(take());
  EXPECT_EQ(first.record.payload, "a");
  EXPECT_EQ(first.record.attempt, 1U);
  EXPECT_THAT(take({{first.number, Kind::kDelivered}}).records, IsEmpty());
  clock_.advance(100'000);
  EXPECT_THAT(take().records, IsEmpty());
}

// Z12
TEST_F(StreamSourceTest, SettlingAndTakingIsOneCommit) {
  append("a", "k");
  append("b", "k");
  const Handout first = only(take());
  const std::size_t commits = store_.rules.journal.batches().size();
  EXPECT_EQ(only(take({{first.number, Kind::kDelivered}})).record.payload, "b");
  EXPECT_EQ(store_.rules.journal.batches().size(), commits + 1);
}

// Z10
TEST_F(StreamSourceTest, OnlyASettledAttemptCounts) {
  append("a");
  {
    StreamSource dies(store_, clock_, settings(),
                      [](const Record& record, std::uint64_t) { return record.id; });
    ASSERT_THAT(dies.take({.room = 1, .lease = Duration{10'000}}).value().records, SizeIs(1));
  }
  clock_.advance(10'001);
  const Handout again = only(take());
  EXPECT_EQ(again.record.attempt, 1U);
  EXPECT_EQ(registers(), 0U);
  EXPECT_THAT(take({{again.number, Kind::kNotSent}}, 0).records, IsEmpty());
  const Handout third = only(take());
  EXPECT_EQ(third.record.attempt, 1U);
  const Hand waits = take({{third.number, Kind::kRetry, Duration{500}, "HTTP 500"}});
  EXPECT_THAT(waits.records, IsEmpty());
  EXPECT_EQ(waits.next_due, Duration{500});
  EXPECT_EQ(registers(), 1U);
  clock_.advance(500);
  const Handout fourth = only(take());
  EXPECT_EQ(fourth.record.attempt, 2U);
  EXPECT_THAT(take({{fourth.number, Kind::kDelivered}}).records, IsEmpty());
  EXPECT_EQ(registers(), 0U);
}

TEST_F(StreamSourceTest, AnotherProcessKnowsTheAttempts) {
  append("a");
  take({{only(take()).number, Kind::kRetry, Duration{0}, "HTTP 500"}}, 0);
  StreamSource other(store_, clock_, settings(),
                     [](const Record& record, std::uint64_t) { return record.id; });
  const Hand hand = other.take({.room = 1, .lease = Duration{10'000}}).value();
  ASSERT_THAT(hand.records, SizeIs(1));
  EXPECT_EQ(hand.records.front().record.attempt, 2U);
}

// Z11
TEST_F(StreamSourceTest, WhatIsGivenUpIsADeadLetterAndItsKeyGoesOn) {
  append("a", "k");
  append("b", "k");
  const Handout first = only(take());
  const Handout next = only(take({{first.number, Kind::kDead, Duration{0}, "HTTP 422\n\x1b[2J"}}));
  EXPECT_EQ(next.record.payload, "b");
  EXPECT_THAT(dead(), ElementsAre(testing::Pair("a", "HTTP 422??[2J")));
}

TEST_F(StreamSourceTest, NoAttemptBeginsTooLate) {
  append("a");
  take({{only(take()).number, Kind::kRetry, Duration{40'000}, "HTTP 503"}});
  clock_.advance(40'000);
  take({{only(take()).number, Kind::kRetry, Duration{20'001}, "HTTP 503"}});
  ASSERT_THAT(dead(), SizeIs(1));
  EXPECT_THAT(dead()["a"], HasSubstr("given up after 40000 ms and attempts (2): HTTP 503"));
  EXPECT_EQ(registers(), 0U);
}

TEST_F(StreamSourceTest, LeasesAreRenewedWhileTheRecordIsHeld) {
  append("a");
  const Handout held = only(take());
  for (int i = 0; i < 10; ++i) {
    clock_.advance(4'000);
    EXPECT_THAT(take().records, IsEmpty()) << i;
    EXPECT_GE(take().lease_left, Duration{6'000});
  }
  EXPECT_THAT(take({{held.number, Kind::kDelivered}}).lost, IsEmpty());
  clock_.advance(100'000);
  EXPECT_THAT(take().records, IsEmpty());
}

TEST_F(StreamSourceTest, WhatSomebodyElseHasIsToldAsLost) {
  append("a");
  const Handout held = only(take());
  clock_.advance(10'001);
  StreamSource other(store_, clock_, settings(),
                     [](const Record& record, std::uint64_t) { return record.id; });
  ASSERT_THAT(other.take({.room = 1, .lease = Duration{10'000}}).value().records, SizeIs(1));
  EXPECT_THAT(take().lost, ElementsAre(held.number));
}

TEST_F(StreamSourceTest, WhatIsNotWantedIsPassedOver) {
  StreamSource picky(
      store_, clock_, settings(), [](const Record& record, std::uint64_t) { return record.id; },
      [](const Outgoing& record) -> std::optional<std::uint32_t> {
        if (record.payload == "a") return std::nullopt;
        return 0;
      });
  append("a");
  append("b");
  const TakeCall call{.room = 10, .lease = Duration{10'000}};
  const Hand hand = picky.take(call).value();
  ASSERT_THAT(hand.records, SizeIs(1));
  EXPECT_EQ(hand.records.front().record.payload, "b");
  EXPECT_EQ(picky.passed_over(), 1U);
  ASSERT_TRUE(picky.give_back({}).ok());
  const Hand again = picky.take(call).value();
  ASSERT_THAT(again.records, SizeIs(1));
  EXPECT_EQ(again.records.front().record.payload, "b");
}

// Its sequences begin again, so its records must not have the keys of others.
// Whoever judges a record, such as by its signature, sees the first one too.
TEST_F(StreamSourceTest, TheFirstTypeCountsAlsoIfItIsEmpty) {
  const Header headers[] = {{kTypeHeader, ""}, {kTypeHeader, "OrderRefunded"}};
  run(Append{.stream = "orders", .payload = "{}", .id = "a", .headers = headers});
  const Handout handout = only(take());
  EXPECT_EQ(handout.record.type, "");
  EXPECT_THAT(handout.record.headers, SizeIs(1));
}

TEST_F(StreamSourceTest, AStreamThatWasMadeAgainHasOtherKeys) {
  append("a");
  const Handout before = only(take());
  run(DeleteStream{"orders"});
  EXPECT_EQ(source_.take({.room = 1, .lease = Duration{10'000}}).error().code, Errc::kNotFound);
  make_stream();
  append("a");
  const Handout after = only(take());
  EXPECT_NE(before.record.id, after.record.id);
}

TEST_F(StreamSourceTest, AStreamThatWasMadeAgainUnnoticedHasOtherKeys) {
  append("a");
  const Handout before = only(take());
  run(DeleteStream{"orders"});
  make_stream();
  append("a");
  EXPECT_EQ(source_.take({.room = 1, .lease = Duration{10'000}}).error().code, Errc::kUnavailable);
  clock_.advance(60'000);
  const Handout after = only(take());
  EXPECT_NE(before.record.id, after.record.id);
}

// Registers are everybody's: what others wrote there ends nothing.
TEST_F(StreamSourceTest, AttemptsThatMakeNoSenseDoNotCount) {
  append("a");
  take({{only(take()).number, Kind::kRetry, Duration{0}, "HTTP 500"}}, 0);
  const std::string name =
      base::format("erp.attempts/{}/1", store_.rules.state.find_stream("orders")->uid.value);
  for (const char* value : {"4294967295 0", "1 -9223372036854775808", "1 5 x", "0 5", "x"}) {
    run(Set{.name = name, .value = value, .mode = SetMode::kAlways});
    const Handout again = only(take());
    EXPECT_EQ(again.record.attempt, 1U) << value;
    take({{again.number, Kind::kNotSent}}, 0);
  }
}

TEST_F(StreamSourceTest, AStreamWhoseIdsAreUniquePerGroupIsRefused) {
  run(DeleteStream{"orders"});
  run(CreateStream{"orders", {.id_scope = IdScope::kGroup}});
  const auto refused = source_.take({.room = 1, .lease = Duration{10'000}});
  EXPECT_EQ(refused.error().code, Errc::kPreconditionFailed);
}

TEST_F(StreamSourceTest, PayloadsThatAreHeldAreBounded) {
  const std::string large(1 << 20, 'x');
  for (int i = 0; i < 100; ++i) {
    run(Append{.stream = "orders", .payload = large, .id = std::to_string(i)});
  }
  std::vector<HandoutNumber> numbers;
  for (int i = 0; i < 100; ++i) {
    for (const Handout& handout : take({}, 1).records) numbers.push_back(handout.number);
  }
  EXPECT_EQ(numbers.size(), 64U);
  EXPECT_THAT(take({{numbers.front(), Kind::kDelivered}}, 1).records, SizeIs(1));
}

TEST_F(StreamSourceTest, WhatIsGivenBackComesAtOnce) {
  append("a");
  only(take());
  ASSERT_TRUE(source_.give_back({}).ok());
  EXPECT_EQ(only(take()).record.attempt, 1U);
}

}  // namespace
}  // namespace hapax::delivery
