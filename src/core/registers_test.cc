#include "core/registers.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/test_store.h"

namespace hapax::core {
namespace {

Verdict set(rig::MemoryStore& store, std::optional<HybridTime> at) {
  const std::vector<Op> ops = {
      Set{.name = "r", .value = "v", .mode = SetMode::kLastWriter, .at = at}};
  return std::get<Answer>(store.commit({.ops = ops})).verdicts.front();
}

// H1: also after a writer who used up the counter.
TEST(Registers, ALaterWriteWinsOverTheHighestCounter) {
  rig::MemoryStore store;
  store.begin(Duration{0});
  const HybridTime highest{to_ms(store.now) + 500, std::numeric_limits<std::uint32_t>::max(), 9};
  ASSERT_TRUE(std::holds_alternative<Registered>(set(store, highest)));
  const Verdict later = set(store, std::nullopt);
  ASSERT_TRUE(std::holds_alternative<Registered>(later));
  EXPECT_GT(std::get<Registered>(later).at, highest);
}

TEST(Registers, AWriteOfTheDistantPastIsSuperseded) {
  rig::MemoryStore store;
  store.begin(Duration{0});
  ASSERT_TRUE(std::holds_alternative<Registered>(set(store, std::nullopt)));
  const HybridTime past{std::numeric_limits<std::int64_t>::min(), 0, 0};
  EXPECT_TRUE(std::holds_alternative<Superseded>(set(store, past)));
}

TEST(Registers, AWriteOfTheDistantFutureIsRefused) {
  rig::MemoryStore store;
  store.begin(Duration{0});
  const HybridTime future{std::numeric_limits<std::int64_t>::max(), 0, 0};
  EXPECT_TRUE(std::holds_alternative<Refused>(set(store, future)));
}

// --- those that go, and Redis' way of setting
// -----------------------------------------------------

class KeyValue : public testing::Test {
 protected:
  KeyValue() { store.begin(Duration{0}); }

  Verdict run(const Op& op) {
    return std::get<Answer>(store.commit({.ops = {&op, 1}})).verdicts.front();
  }
  Held held(const Op& op) { return std::get<Held>(run(op)); }
  Held put(std::string_view value, SetMode mode = SetMode::kAlways, Expiry expiry = {}) {
    return held(
        Set{.name = "r", .value = value, .mode = mode, .expiry = expiry, .tell_value = true});
  }
  Held get() { return held(Get{"r"}); }
  void pass(std::int64_t ms) {
    store.keep();
    store.begin(Duration{ms});
  }
  static Expiry after(std::int64_t ms) { return {Expiry::Kind::kAfter, {}, Duration{ms}}; }
  [[nodiscard]] Expiry at(std::int64_t ms) const {
    return {Expiry::Kind::kAt, store.now + Duration{ms}, {}};
  }
  static Expiry keep() { return {Expiry::Kind::kKeep, {}, {}}; }

  rig::MemoryStore store;
};

// H5
TEST_F(KeyValue, OneWinsOfThoseWhoSetWhatIsAbsent) {
  EXPECT_TRUE(put("one", SetMode::kAbsent).applied);
  const Held second = put("two", SetMode::kAbsent);
  EXPECT_FALSE(second.applied);
  EXPECT_EQ(second.value, "one");
  EXPECT_EQ(get().value, "one");
  put("three", SetMode::kAlways, after(100));
  EXPECT_FALSE(put("four", SetMode::kAbsent).applied) << "about to go is not gone";
}

TEST_F(KeyValue, WhatIsAbsentIsNotReplaced) {
  EXPECT_FALSE(put("one", SetMode::kPresent).applied);
  EXPECT_FALSE(get().applied);
  EXPECT_TRUE(put("one").applied);
  EXPECT_EQ(put("two", SetMode::kPresent).value, "one");
  EXPECT_EQ(get().value, "two");
}

// H4
TEST_F(KeyValue, ItIsGoneFromItsExpiryOn) {
  put("one", SetMode::kAlways, after(100));
  pass(99);
  EXPECT_EQ(get().value, "one");
  pass(1);
  EXPECT_FALSE(get().applied);
  EXPECT_EQ(store.state.registers.size(), 1U) << "nobody has come by";
  EXPECT_TRUE(put("two", SetMode::kAbsent).applied);
  pass(10'000);
  EXPECT_EQ(get().value, "two") << "what was set anew does not go with what went";
}

TEST_F(KeyValue, WhatIsGoneIsCollectedInSlices) {
  const std::uint64_t bytes = store.state.text_bytes;
  for (int i = 0; i < 10; ++i) {
    const std::string name = "r" + std::to_string(i);
    held(Set{.name = name, .mode = SetMode::kAlways, .expiry = after(i < 8 ? 10 : 1'000)});
  }
  pass(10);
  EXPECT_EQ(collect_registers(store.state, store.now, 5), 5U);
  EXPECT_EQ(collect_registers(store.state, store.now, 5), 3U);
  EXPECT_EQ(store.state.registers.size(), 2U);
  pass(1'000);
  collect(store.state, store.now, 100);
  EXPECT_TRUE(store.state.registers.empty());
  EXPECT_EQ(store.state.text_bytes, bytes);
}

// H3
TEST_F(KeyValue, AVersionNeverComesAgain) {
  const Version first = put("one").version;
  const Version second = put("two").version;
  EXPECT_LT(first, second);
  EXPECT_TRUE(held(Unset{"r"}).applied);
  const Version third = put("three", SetMode::kAlways, after(5)).version;
  EXPECT_LT(second, third);
  pass(5);
  collect(store.state, store.now, 100);
  const Verdict guarded = run(Set{.name = "r", .value = "four"});
  EXPECT_LT(third, std::get<Registered>(guarded).version);
}

TEST_F(KeyValue, TheExpiryIsReplacedOrKept) {
  put("one", SetMode::kAlways, after(100));
  EXPECT_EQ(put("two", SetMode::kAlways, keep()).expires_at, store.now + Duration{100});
  EXPECT_EQ(put("three").expires_at, Time::max());
  EXPECT_EQ(put("four", SetMode::kAlways, at(7)).expires_at, store.now + Duration{7});
  const Held over = put("five", SetMode::kAlways, at(0));
  EXPECT_TRUE(over.applied);
  EXPECT_EQ(over.version, Version{0});
  EXPECT_FALSE(get().applied);
}

TEST_F(KeyValue, AnExpiryIsGivenChangedAndTaken) {
  EXPECT_FALSE(held(Expire{"r", after(5)}).applied) << "there is none";
  put("one");
  EXPECT_FALSE(held(Expire{"r", {}}).applied) << "it stays anyway";
  EXPECT_FALSE(held(Expire{"r", after(5), ExpireIf::kSome}).applied);
  EXPECT_FALSE(held(Expire{"r", after(5), ExpireIf::kSomeEarlier}).applied);
  EXPECT_FALSE(held(Expire{"r", after(5), ExpireIf::kLater}).applied) << "nothing is later";
  EXPECT_TRUE(held(Expire{"r", after(50), ExpireIf::kNever}).applied);
  EXPECT_FALSE(held(Expire{"r", after(60), ExpireIf::kNever}).applied);
  EXPECT_FALSE(held(Expire{"r", after(60), ExpireIf::kEarlier}).applied);
  EXPECT_TRUE(held(Expire{"r", after(60), ExpireIf::kLater}).applied);
  EXPECT_TRUE(held(Expire{"r", after(70), ExpireIf::kSome}).applied);
  EXPECT_TRUE(held(Expire{"r", after(50), ExpireIf::kSomeEarlier}).applied);
  EXPECT_TRUE(held(Expire{"r", after(40), ExpireIf::kEarlier}).applied);
  EXPECT_EQ(get().expires_at, store.now + Duration{40});
  EXPECT_TRUE(held(Expire{"r", {}}).applied);
  EXPECT_EQ(get().expires_at, Time::max());
  EXPECT_TRUE(held(Expire{"r", after(-1)}).applied);
  EXPECT_FALSE(get().applied);
}

TEST_F(KeyValue, NumbersAreAddedUpAndKeepTheirExpiry) {
  EXPECT_EQ(held(Add{"r", 5}).number, 5);
  EXPECT_TRUE(held(Expire{"r", after(50)}).applied);
  const Held less = held(Add{"r", -7});
  EXPECT_EQ(less.number, -2);
  EXPECT_EQ(less.expires_at, store.now + Duration{50});
  EXPECT_EQ(get().value, "-2");
}

TEST_F(KeyValue, WhatIsNoNumberIsNotAddedTo) {
  for (const char* text : {"", " 1", "1 ", "+1", "01", "-0", "1.0", "9223372036854775808", "a"}) {
    put(text);
    const auto refused = std::get<Refused>(run(Add{"r", 1}));
    EXPECT_EQ(refused.error.detail, "value is not an integer or out of range") << text;
    EXPECT_EQ(get().value, text);
  }
  put("9223372036854775807");
  const auto refused = std::get<Refused>(run(Add{"r", 1}));
  EXPECT_EQ(refused.error.detail, "increment or decrement would overflow");
  EXPECT_EQ(held(Add{"r", -1}).number, std::numeric_limits<std::int64_t>::max() - 1);
}

TEST_F(KeyValue, AnAnswerThatNothingWasSetDoesNotAbortACommit) {
  put("one");
  const std::vector<Op> ops{Set{.name = "r", .value = "two", .mode = SetMode::kAbsent},
                            Set{.name = "q", .value = "three", .mode = SetMode::kAlways},
                            Get{"never"}};
  EXPECT_TRUE(std::get<Answer>(store.commit({.ops = ops})).committed);
  EXPECT_EQ(held(Get{"q"}).value, "three");
}

TEST_F(KeyValue, WhatAsksForAValueCannotWaitInATransaction) {
  const Epoch epoch = std::get<Began>(run(Begin{"t"})).epoch;
  const auto stage = [&](const Op& op) {
    return store.commit({.ops = {&op, 1}, .transaction = TransactionRef{"t", epoch}});
  };
  EXPECT_TRUE(std::holds_alternative<Error>(stage(Get{"r"})));
  EXPECT_TRUE(std::holds_alternative<Error>(stage(Unset{"r", true})));
  EXPECT_TRUE(std::get<Answer>(stage(Add{"r", 3})).committed);
  EXPECT_TRUE(std::get<Answer>(stage(Expire{"r", after(50)})).committed);
  const Op end = End{"t", epoch};
  EXPECT_TRUE(std::get<Answer>(store.commit({.ops = {&end, 1}})).committed);
  EXPECT_EQ(get().value, "3");
  EXPECT_EQ(get().expires_at, store.now + Duration{50});
}

}  // namespace
}  // namespace hapax::core
