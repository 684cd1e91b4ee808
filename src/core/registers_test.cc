#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "core/test_door.h"

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

}  // namespace
}  // namespace hapax::core
