#include "core/shared_table.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace hapax::core {
namespace {

using Table = SharedTable<std::shared_ptr<const std::string>>;
using TableModel = std::map<base::Hash128, std::string>;

template <class Elements>
TableModel table_content(const Elements& elements) {
  TableModel model;
  elements.for_each([&](base::Hash128 hash, const auto& value) {
    EXPECT_TRUE(model.emplace(hash, *value).second);
  });
  return model;
}

std::shared_ptr<const std::string> text(int i) {
  return std::make_shared<const std::string>(std::to_string(i));
}

// R3: whatever happens to the table, every snapshot stays what it was.
RC_GTEST_PROP(SharedTable, IsAMapAndItsSnapshotsStay, ()) {
  Table table(2);
  TableModel model;
  std::vector<std::pair<Table::Image, TableModel>> snapshots;
  const auto steps = *rc::gen::inRange(0, 3'000);
  for (int i = 0; i < steps; ++i) {
    const base::Hash128 key = base::spread(*rc::gen::inRange<std::uint64_t>(0, 900));
    switch (*rc::gen::inRange(0, 40)) {
      case 0:
        snapshots.emplace_back(table.snapshot(), model);
        break;
      case 1:
      case 2:
      case 3:
      case 4:
        RC_ASSERT(table.contains(key) == model.contains(key));
        if (table.contains(key)) RC_ASSERT(*table.take(key) == model[key]);
        model.erase(key);
        break;
      default:
        RC_ASSERT(table.set(key, text(i)) == !model.contains(key));
        model[key] = std::to_string(i);
        RC_ASSERT(**table.find(key) == model[key]);
    }
    RC_ASSERT(table.size() == model.size());
  }
  RC_ASSERT(table_content(table) == model);
  for (const auto& [image, then] : snapshots) {
    RC_ASSERT(image.size() == then.size());
    RC_ASSERT(table_content(image) == then);
  }
}

TEST(SharedTable, UsesFreeSlotsAgain) {
  Table table(2);
  for (int round = 0; round < 10; ++round) {
    for (std::uint64_t i = 0; i < 200; ++i) table.set(base::spread(i), text(round));
    for (std::uint64_t i = 0; i < 200; ++i) EXPECT_EQ(*table.take(base::spread(i)), *text(round));
  }
  EXPECT_TRUE(table.empty());
  EXPECT_LT(table.free_bytes(), 400 * sizeof(Table::Slot));
}

}  // namespace
}  // namespace hapax::core
