#include "core/shared_map.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/run_list.h"

namespace hapax::core {
namespace {

using Map = SharedMap<std::uint64_t, std::string>;
using PlainMap = std::map<std::uint64_t, std::string>;

PlainMap content(const Map& map) { return {map.begin(), map.end()}; }
PlainMap content(const Map::Image& image) {
  PlainMap model;
  image.for_each([&](std::uint64_t key, const std::string& value) { model.emplace(key, value); });
  return model;
}

// R3: whatever happens to the map, every snapshot stays what it was.
RC_GTEST_PROP(SharedMap, IsAMapAndItsSnapshotsStay, ()) {
  Map map;
  PlainMap model;
  std::vector<std::pair<Map::Image, PlainMap>> snapshots;
  const auto steps = *rc::gen::inRange(0, 3'000);
  for (int i = 0; i < steps; ++i) {
    const auto key = *rc::gen::inRange<std::uint64_t>(0, 600);
    switch (*rc::gen::inRange(0, 40)) {
      case 0:
        snapshots.emplace_back(map.snapshot(), model);
        break;
      case 1:
      case 2:
      case 3:
      case 4:
        RC_ASSERT(map.contains(key) == model.contains(key));
        if (map.contains(key)) map.erase(key);
        model.erase(key);
        break;
      default:
        RC_ASSERT(map.set(key, std::to_string(i)) == !model.contains(key));
        model[key] = std::to_string(i);
    }
    RC_ASSERT(map.size() == model.size());
  }
  RC_ASSERT(content(map) == model);
  for (const auto& [image, then] : snapshots) RC_ASSERT(content(image) == then);
}

Run run(std::uint64_t first) { return {Sequence{first}, 1, 10, {1, 64, 10}, Time{}, {first}}; }

std::vector<std::uint64_t> content(const auto& runs) {
  std::vector<std::uint64_t> lengths;
  for (const Run& one : runs) lengths.push_back(one.first.value * 1'000 + one.at.length);
  return lengths;
}

// R3
RC_GTEST_PROP(RunList, IsADequeAndItsSnapshotsStay, ()) {
  RunList runs;
  std::deque<Run> model;
  std::vector<std::pair<RunList::Image, std::vector<std::uint64_t>>> snapshots;
  std::uint64_t next = 1;
  const auto steps = *rc::gen::inRange(0, 1'500);
  for (int i = 0; i < steps; ++i) {
    const int what = *rc::gen::inRange(0, 40);
    if (what == 0) snapshots.emplace_back(runs.snapshot(), content(model));
    if (what > 10 || model.empty()) {
      runs.push_back(run(next));
      model.push_back(run(next));
      ++next;
    } else if (what < 3) {
      runs.pop_back();
      model.pop_back();
      --next;
    } else if (what < 7) {
      runs.pop_front();
      model.pop_front();
    } else {
      const auto place = *rc::gen::inRange<std::size_t>(0, model.size());
      ++runs.edit(place).at.length;
      ++model[place].at.length;
    }
    RC_ASSERT(runs.size() == model.size());
    if (model.empty()) continue;
    RC_ASSERT(runs.back().first == model.back().first);
    RC_ASSERT(runs.ending_from(model.front().first)->first == model.front().first);
  }
  RC_ASSERT(content(runs) == content(model));
  for (const auto& [image, then] : snapshots) RC_ASSERT(content(image) == then);
}

}  // namespace
}  // namespace hapax::core
