// The memory budget: everything that a caller can make the store remember is refused beyond it, and
// nothing else is.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "core/state_codec.h"
#include "core/test_store.h"

namespace hapax::core {
namespace {

class Budget : public testing::Test {
 protected:
  Budget() {
    store.begin(Duration{1});
    run(CreateStream{"s", {}});
    run(Set{.name = "r", .value = "four"});
    run(Advance{"source", "", "four", Epoch{1}});
    epoch = std::get<Began>(run(Begin{"t"})).epoch;
    run(Append{.stream = "s", .payload = "p"});
    run(OpenProducer{"s", "w"});
    std::get<Received>(run(Receive{.stream = "s", .consumer = "c"}));
  }
  Verdict run(const Op& op) {
    const Executed executed = store.commit({.ops = {&op, 1}});
    return std::get<Answer>(executed).verdicts.front();
  }
  void fill() { store.state.memory_max = store.state.memory_bytes(); }
  void expect_refused(const Op& op) {
    const std::uint64_t before = store.state.memory_bytes();
    const Verdict verdict = run(op);
    ASSERT_TRUE(std::holds_alternative<Refused>(verdict)) << word_of(verdict);
    const Error& error = std::get<Refused>(verdict).error;
    EXPECT_EQ(error.code, Errc::kMemoryBudget) << error.text();
    EXPECT_NE(error.detail.find(base::format(" of {} bytes", store.state.memory_max)),
              std::string::npos);
    EXPECT_EQ(store.state.memory_bytes(), before);
  }

  rig::MemoryStore store;
  Epoch epoch;
};

// What found no room may be done later, under the same id; what was done is not done again.
TEST_F(Budget, ACommitThatDidNothingForLackOfRoomIsTriedAgainUnderItsId) {
  const std::vector<Op> none{Get{"r"}, CreateStream{"first", {}}, Begin{"another"}};
  const std::vector<Op> some{Set{.name = "r", .value = "five", .mode = SetMode::kAlways},
                             CreateStream{"second", {}}};
  const auto commit = [&](const std::vector<Op>& ops, std::string_view id) {
    return store.commit({.ops = ops, .mode = Mode::kEach, .id = id});
  };
  const auto refused = [](const Executed& executed) {
    const Verdict& last = std::get<Answer>(executed).verdicts.back();
    return std::holds_alternative<Refused>(last);
  };
  fill();
  store.state.memory_max += sizeof(SettledEntry);  // of a commit id
  EXPECT_TRUE(refused(commit(none, "none")));
  EXPECT_TRUE(refused(commit(none, "none")));
  EXPECT_TRUE(refused(commit(some, "some")));
  store.state.memory_max = ~std::uint64_t{0};
  EXPECT_FALSE(refused(commit(none, "none")));
  EXPECT_TRUE(std::holds_alternative<Repeat>(commit(none, "none")));
  EXPECT_TRUE(std::holds_alternative<Repeat>(commit(some, "some")));
}

TEST_F(Budget, WhatGrowsIsRefused) {
  fill();
  const std::vector<Op> growing{CreateStream{"another", {}},
                                OpenProducer{"s", "another"},
                                CreateConsumer{"s", "another", {}},
                                Receive{.stream = "s", .consumer = "another"},
                                Set{.name = "another"},
                                Set{.name = "r", .value = "five!", .expected = Version{1}},
                                Advance{"another", "", "1", Epoch{1}},
                                Advance{"source", "four", "five!", Epoch{1}},
                                Begin{"another"}};
  for (std::size_t i = 0; i < growing.size(); ++i) {
    SCOPED_TRACE(i);
    expect_refused(growing[i]);
  }
  const Op set = Set{.name = "staged"};
  const Executed staged =
      store.commit({.ops = {&set, 1}, .transaction = TransactionRef{"t", epoch}});
  EXPECT_EQ(std::get<Error>(staged).code, Errc::kMemoryBudget);
}

TEST_F(Budget, WhatDoesNotGrowGoesOn) {
  fill();
  const std::vector<Op> same{CreateStream{"s", {}},
                             OpenProducer{"s", "w"},
                             Set{.name = "r", .value = "two", .expected = Version{1}},
                             Advance{"source", "four", "two", Epoch{1}},
                             Begin{"t"},
                             Receive{.stream = "s", .consumer = "c"},
                             Trim{"s", Sequence{2}}};
  for (std::size_t i = 0; i < same.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_TRUE(holds(run(same[i])));
  }
  EXPECT_LT(store.state.memory_bytes(), store.state.memory_max);
}

TEST_F(Budget, ACommitIdIsRefusedAndARepeatIsNot) {
  const Op old = Trim{"s", Sequence{1}};
  std::get<Answer>(store.commit({.ops = {&old, 1}, .id = "known"}));
  fill();
  EXPECT_TRUE(std::holds_alternative<Repeat>(store.commit({.ops = {&old, 1}, .id = "known"})));
  const Op op = Receive{.stream = "s", .consumer = "c"};
  const Executed refused = store.commit({.ops = {&op, 1}, .id = "new"});
  ASSERT_TRUE(std::holds_alternative<Error>(refused));
  EXPECT_EQ(std::get<Error>(refused).code, Errc::kMemoryBudget);
  EXPECT_TRUE(holds(run(op))) << "without an id nothing is remembered of it";
}

TEST_F(Budget, WhereRecordsLieCountsUntilTheyLeave) {
  const std::uint64_t before = store.state.memory_bytes();
  store.keep();
  for (int i = 0; i < 100; ++i) {
    store.begin(Duration{1});
    run(Append{.stream = "s", .payload = "p", .group = "g"});
  }
  const std::uint64_t full = store.state.memory_bytes();
  EXPECT_GE(full, before + 100 * sizeof(core::Run));
  store.roll_back();
  EXPECT_EQ(store.state.memory_bytes(), before);
  for (int i = 0; i < 100; ++i) {
    store.begin(Duration{1});
    run(Append{.stream = "s", .payload = "p", .group = "g"});
  }
  run(Trim{"s", Sequence{1'000}});
  store.keep();
  collect(store.state, store.now, 1'000);
  EXPECT_LE(store.state.memory_bytes(), before);
}

TEST_F(Budget, ItIsTheSameAfterARestart) {
  run(Append{.stream = "s", .payload = "p", .group = "g"});
  run(Append{.stream = "s", .payload = "p", .group = "h"});
  run(Advance{"source", "four", std::string(500, 'x'), Epoch{1}});
  std::string bytes;
  encode_state(store.state, bytes);
  State loaded(4);
  ASSERT_TRUE(decode_state(bytes, loaded).ok());
  EXPECT_EQ(loaded.text_bytes, store.state.text_bytes);
}

}  // namespace
}  // namespace hapax::core
