// Registers that go by themselves, and what Redis' clients do with keys.
#include <set>

#include "store_contract.h"

namespace hapax::contract {
namespace {

class Registers : public StoreContract {
 protected:
  static Expiry after(std::int64_t ms) { return {Expiry::Kind::kAfter, {}, Duration{ms}}; }
  Held put(std::string_view name, std::string_view value, SetMode mode = SetMode::kAlways,
           Expiry expiry = {}) {
    return run<Held>(
        Set{.name = name, .value = value, .mode = mode, .expiry = expiry, .tell_value = true});
  }
  void wait_until_gone(std::string_view name) {
    while (run<Held>(Get{name}).applied) std::this_thread::yield();
  }
  // All names, by steps of that size.
  std::multiset<std::string> scan(std::uint32_t max, std::string_view prefix = {}) {
    std::multiset<std::string> names;
    RegisterScan question{0, max, prefix};
    do {
      const RegisterPage page = store().scan_registers(question).value();
      names.insert(page.names.begin(), page.names.end());
      question.cursor = page.next;
    } while (question.cursor != 0);
    return names;
  }
};

// H5
TEST_P(Registers, OneWinsOfThoseWhoSetWhatIsAbsent) {
  EXPECT_TRUE(put("r", "one", SetMode::kAbsent).applied);
  always([&] {
    EXPECT_FALSE(put("r", "two", SetMode::kAbsent, after(1)).applied);
    EXPECT_EQ(run<Held>(Get{"r"}).value, "one");
    EXPECT_EQ(store().find_register("r").value()->value, "one");
  });
}

// H4
TEST_P(Registers, WhatExpiredIsGoneForEverybody) {
  put("r", "one", SetMode::kAlways, after(50));
  put("stays", "two");
  wait_until_gone("r");
  always([&] {
    EXPECT_FALSE(run<Held>(Get{"r"}).applied);
    EXPECT_EQ(store().find_register("r").value(), std::nullopt);
    EXPECT_EQ(scan(100).count("r"), 0U);
    EXPECT_FALSE(run<Held>(Unset{"r"}).applied);
    EXPECT_FALSE(run<Held>(Expire{"r", after(1'000)}).applied);
    EXPECT_EQ(run<Held>(Get{"stays"}).value, "two");
  });
  EXPECT_TRUE(put("r", "three", SetMode::kAbsent).applied);
}

TEST_P(Registers, AnExpiryIsKeptOverARestart) {
  put("r", "one");
  const Time end = run<Held>(Expire{"r", after(3'600'000)}).expires_at;
  put("q", "one", SetMode::kAlways, after(3'600'000));
  run<Held>(Expire{"q", {}});
  run<Held>(Unset{"never", true});
  always([&] {
    EXPECT_EQ(run<Held>(Get{"r"}).expires_at, end);
    EXPECT_EQ(store().find_register("r").value()->expires_at, end);
    EXPECT_EQ(run<Held>(Get{"q"}).expires_at, Time::max());
  });
}

// H3
TEST_P(Registers, AVersionNeverComesAgain) {
  Version highest;
  always([&] {
    for (const char* value : {"a", "b"}) {
      const Version version = put("r", value).version;
      EXPECT_GT(version, highest);
      highest = version;
    }
    EXPECT_TRUE(run<Held>(Unset{"r"}).applied);
  });
}

TEST_P(Registers, AddsUpWhateverHappensInBetween) {
  std::int64_t sum = 0;
  always([&] {
    EXPECT_EQ(run<Held>(Add{"n", 5}).number, sum += 5);
    EXPECT_EQ(run<Held>(Add{"n", -2}).number, sum -= 2);
  });
  put("n", "text");
  EXPECT_EQ(refusal(Add{"n", 1}).code, Errc::kPreconditionFailed);
}

TEST_P(Registers, ARepeatedCommitIsToldTheSameValue) {
  put("r", "one");
  const std::vector<Op> ops{
      Set{.name = "r", .value = "two", .mode = SetMode::kAlways, .tell_value = true}, Add{"n"}};
  const Answer first = commit(ops, Mode::kAtomic, "once");
  put("r", "three");
  always([&] {
    const Answer again = commit(ops, Mode::kAtomic, "once");
    EXPECT_TRUE(again.repeated);
    EXPECT_EQ(again.verdicts, first.verdicts);
    EXPECT_EQ(run<Held>(Get{"r"}).value, "three");
  });
}

TEST_P(Registers, ACommitThatIsNotAppliedLeavesThemAsTheyWere) {
  put("r", "one");
  const std::vector<Op> ops{Set{.name = "r", .value = "two", .mode = SetMode::kAlways}, Unset{"r"},
                            Add{"n"}, Set{.name = "x", .expected = Version{9}}};
  EXPECT_FALSE(commit(ops).committed);
  always([&] {
    EXPECT_EQ(run<Held>(Get{"r"}).value, "one");
    EXPECT_FALSE(run<Held>(Get{"n"}).applied);
  });
}

TEST_P(Registers, AScanTellsAllThatStay) {
  std::vector<Op> ops;
  std::vector<std::string> names;
  for (int i = 0; i < 1'000; ++i) names.push_back("r" + std::to_string(i));
  for (const std::string& name : names) ops.push_back(Set{.name = name, .mode = SetMode::kAlways});
  each(ops);
  EXPECT_EQ(store().statistics()->registers, 1'000U);
  RegisterScan question{0, 7, {}};
  std::set<std::string> found;
  int steps = 0;
  do {
    const RegisterPage page = store().scan_registers(question).value();
    found.insert(page.names.begin(), page.names.end());
    question.cursor = page.next;
    run<Held>(Unset{names[static_cast<std::size_t>(steps)]});
    put("new" + std::to_string(steps++), "v");
  } while (question.cursor != 0 && steps < 900);
  for (std::size_t i = static_cast<std::size_t>(steps); i < names.size(); ++i) {
    EXPECT_TRUE(found.contains(names[i])) << names[i];
  }
  EXPECT_EQ(scan(10'000, "new").size(), static_cast<std::size_t>(steps));
  EXPECT_EQ(store().scan_registers({0, 0, {}}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(store().scan_registers({0, 10'001, {}}).error().code, Errc::kLimitExceeded);
  EXPECT_EQ(store().scan_registers({1ULL << 60, 10, {}})->next, 0U) << "a cursor of nowhere";
}

INSTANTIATE_TEST_SUITE_P(Stores, Registers, testing::ValuesIn(all_stores()), name_of);

}  // namespace
}  // namespace hapax::contract
