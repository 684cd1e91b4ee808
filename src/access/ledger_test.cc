#include "access/ledger.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "access/no_store_test.h"

namespace hapax::access {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr Time kNow = time_from_ms(std::int64_t{500'000} * 3'600'000);

// Keeps registers, and nothing else.
class RegisterStore final : public NoStore {
 public:
  Result<Answer> commit(const Commit& commit) override {
    if (away) return Error{Errc::kUnavailable, "away"};
    Answer answer{true, false, now, {}};
    for (const Op& op : commit.ops) {
      if (const auto* get = std::get_if<Get>(&op)) {
        const auto found = registers.find(std::string(get->name));
        answer.verdicts.emplace_back(found == registers.end()
                                         ? Held{}
                                         : Held{.applied = true,
                                                .value = found->second.value,
                                                .version = found->second.version});
        continue;
      }
      const auto& set = std::get<Set>(op);
      RegisterValue& held = registers[std::string(set.name)];
      if (held.version != set.expected) {
        answer.verdicts.emplace_back(Superseded{held.version, {}});
        continue;
      }
      held = {std::string(set.value), held.version.next(), {}, now + set.expiry.after};
      answer.verdicts.emplace_back(Registered{held.version, {}});
    }
    return answer;
  }
  Result<std::optional<RegisterValue>> find_register(std::string_view name) override {
    const auto found = registers.find(std::string(name));
    if (found == registers.end()) return std::optional<RegisterValue>();
    return std::optional(found->second);
  }

  std::map<std::string, RegisterValue> registers;
  Time now = kNow;
  bool away = false;
};

Answer answer_at(Time time, std::vector<Verdict> verdicts) {
  return {true, false, time, std::move(verdicts)};
}
Set absent(std::string_view name) { return {.name = name, .mode = SetMode::kAbsent}; }
Held held(bool applied, Time end) {
  Held held{.applied = applied, .expires_at = end};
  held.expires_in = end - kNow;
  return held;
}

class LedgerTest : public testing::Test {
 protected:
  QueueCounts of(const std::string& queue) { return *ledger.of(store, base::split_name(queue)); }
  void claim(Time when, Verdict verdict = Claimed{}) {
    const std::vector<Op> ops = {
        Claim{.scope = "q", .retention = Window{hours{1}}, .tombstone = Window{hours{1}}}};
    ledger.count(ops, answer_at(when, {std::move(verdict)}));
  }

  RegisterStore store;
  Ledger ledger;
};

TEST_F(LedgerTest, CountsAppendsClaimsAndPlainKeysByQueue) {
  const std::string tenant = "\x01t\x01";
  const std::string framed = tenant + "dedup:c:1";
  const std::vector<Op> ops = {Append{.stream = "a"},
                               Append{.stream = "a"},
                               Claim{.scope = "b"},
                               Claim{.scope = "b"},
                               Claim{.scope = "b"},
                               absent("dedup:c:1"),
                               absent("dedup:c:1"),
                               absent("other:c:1"),
                               Append{.stream = "$audit"},
                               Set{.name = "dedup:c:2", .mode = SetMode::kAlways},
                               absent(framed)};
  const Time end = kNow + minutes{30};
  ledger.count(ops,
               answer_at(kNow, {Appended{}, Duplicate{}, Claimed{}, DuplicateClaim{}, InProgress{},
                                held(true, end), held(false, end), held(true, end), Appended{},
                                held(true, end), held(true, end)}));
  EXPECT_TRUE(of("$audit").empty());
  for (const char* const queue : {"a", "b", "c"}) {
    EXPECT_EQ(of(queue).in_all(), (QueueCounts::Asked{2, 1})) << queue;
  }
  EXPECT_EQ(of("a").keys(kNow).count, 0U) << "those of a stream are counted by the store";
  EXPECT_EQ(of("b").keys(kNow).count, 1U);
  EXPECT_EQ(of("c").keys(kNow).count, 1U);
  EXPECT_EQ(ledger.of(store, {"t", "c"})->in_all(), (QueueCounts::Asked{1, 0}));
}

TEST_F(LedgerTest, KeysAreCountedUntilTheirEndAndLookBackADay) {
  claim(kNow);
  claim(kNow, Claimed{.attempt = 2});  // The same key.
  EXPECT_EQ(of("q").keys(kNow).count, 1U);
  const QueueCounts::Slice slice = of("q").slices().begin()->first;
  EXPECT_LE(slice.start(), kNow + hours{1});
  EXPECT_GT(slice.start(), kNow + minutes{50});
  EXPECT_EQ(of("q").keys(kNow + minutes{59}).count, 1U);
  EXPECT_EQ(of("q").keys(kNow + minutes{70}).count, 0U);
  EXPECT_EQ(of("q").last_24h(kNow + hours{23}).checks, 2U);
  EXPECT_EQ(of("q").last_24h(kNow + hours{24}).checks, 0U);
}

TEST_F(LedgerTest, WhatIsKeptIsThereAfterARestart) {
  claim(kNow);
  claim(kNow, DuplicateClaim{});
  ledger.keep(store);
  EXPECT_EQ(of("q").in_all(), (QueueCounts::Asked{2, 1})) << "neither lost nor counted twice";
  claim(kNow, DuplicateClaim{});
  EXPECT_EQ(of("q").in_all(), (QueueCounts::Asked{3, 2}));
  ledger.keep(store);
  EXPECT_EQ(store.registers.size(), 1U);
  const Ledger next;
  const QueueCounts found = *next.of(store, {"", "q"});
  EXPECT_EQ(found.in_all(), (QueueCounts::Asked{3, 2}));
  EXPECT_EQ(found.last_24h(kNow).duplicates, 2U);
  EXPECT_EQ(found.keys(kNow).count, 1U);
}

TEST_F(LedgerTest, ProcessesOfOneStoreAddToTheSameNumbers) {
  Ledger other;
  claim(kNow);
  const std::vector<Op> ops = {Claim{.scope = "q"}};
  other.count(ops, answer_at(kNow, {DuplicateClaim{}}));
  ledger.keep(store);
  other.keep(store);
  EXPECT_EQ(of("q").in_all(), (QueueCounts::Asked{2, 1}));
  EXPECT_EQ(other.of(store, {"", "q"})->in_all(), (QueueCounts::Asked{2, 1}));
}

TEST_F(LedgerTest, WhatCannotBeWrittenStaysCounted) {
  claim(kNow);
  store.away = true;
  ledger.keep(store);
  store.away = false;
  EXPECT_EQ(of("q").in_all().checks, 1U);
  ledger.keep(store);
  EXPECT_EQ(of("q").in_all().checks, 1U);
  EXPECT_EQ(store.registers.size(), 1U);
}

TEST_F(LedgerTest, EverybodysTurnComes) {
  for (int number = 0; number < 250; ++number) {
    const std::string scope = "q" + std::to_string(number);
    const std::vector<Op> ops = {Claim{.scope = scope}};
    ledger.count(ops, answer_at(kNow, {Claimed{}}));
  }
  std::size_t rounds = 0;
  while (ledger.keep(store)) ++rounds;
  EXPECT_EQ(rounds, 3U);
  EXPECT_EQ(store.registers.size(), 250U);
  EXPECT_EQ(of("q249").in_all().checks, 1U);
}

TEST_F(LedgerTest, OneTenantsNamesKeepTheOthersFromNone) {
  const auto names_of = [&](const std::string& frame, std::size_t most) {
    for (std::size_t i = 0; i < most; ++i) {
      const std::string scope = frame + std::to_string(i);
      const std::vector<Op> ops = {Claim{.scope = scope}};
      ledger.count(ops, answer_at(kNow, {Claimed{}}));
    }
    std::size_t counted = 0;
    ledger.each_key_bytes(kNow, [&](const std::string& queue, std::uint64_t) {
      if (queue.starts_with(frame)) ++counted;
    });
    return counted;
  };
  EXPECT_EQ(names_of("\x01thief\x01", 2 * Ledger::kNamesMax), Ledger::kNamesMax / 2);
  EXPECT_EQ(names_of("\x01second\x01", 2 * Ledger::kNamesMax), Ledger::kNamesMax / 4);
  EXPECT_EQ(names_of("\x01victim\x01", 1'000), 1'000U);
  EXPECT_EQ(of("\x01victim\x01" + std::to_string(999)).in_all().checks, 1U);
}

// A scrape that takes its time holds nobody up.
TEST_F(LedgerTest, CommitsAreCountedWhileTheNamesAreLookedThrough) {
  for (int number = 0; number < 200; ++number) {
    const std::string scope = "q" + std::to_string(number);
    const std::vector<Op> ops = {Claim{.scope = scope}};
    ledger.count(ops, answer_at(kNow, {Claimed{}}));
  }
  std::vector<std::string> seen;
  ledger.each_key_bytes(kNow, [&](const std::string& queue, std::uint64_t) {
    seen.push_back(queue);
    std::thread([&] { claim(kNow); }).join();
  });
  EXPECT_EQ(of("q").in_all().checks, seen.size());
  EXPECT_EQ(seen.size(), 200U) << "q itself came before the first one, and too late";
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST_F(LedgerTest, WhatIsOverLeavesTheRegister) {
  claim(kNow);
  ledger.keep(store);
  store.now = kNow + hours{48};
  claim(store.now);
  ledger.keep(store);
  const auto kept = QueueCounts::parse(store.registers.begin()->second.value);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->in_all().checks, 2U);
  EXPECT_EQ(kept->slices().size(), 1U);
  EXPECT_EQ(store.registers.begin()->second.expires_at, store.now + std::chrono::days{30});
}

TEST(QueueCounts, AreReadAsTheyWereWritten) {
  QueueCounts counts;
  counts.asked({3, 1}, kNow);
  counts.remembered({2, 200}, kNow + hours{5}, kNow);
  counts.remembered({1, 100}, Time::max(), kNow);
  const auto again = QueueCounts::parse(counts.text());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->text(), counts.text());
  EXPECT_EQ(again->keys(kNow + hours{1'000}).count, 1U);
  EXPECT_EQ(again->latest_end(), Time::max());
  for (const char* const other : {"", "{}", "7", R"({"in_all":[],"hours":[],"keys":[]})",
                                  R"({"in_all":[[1,-1]],"hours":[],"keys":[]})",
                                  R"({"in_all":[[1,1]],"hours":[[1]],"keys":[]})"}) {
    EXPECT_FALSE(QueueCounts::parse(other)) << other;
  }
}

}  // namespace
}  // namespace hapax::access
