#include "sim/swarm.h"

#include <initializer_list>
#include <vector>

namespace hapax::sim {

namespace {

template <class Value>
Value one_of(Random& random, std::initializer_list<Value> values) {
  return *(values.begin() + static_cast<std::ptrdiff_t>(random.below(values.size())));
}

void draw_trouble(Swarm& swarm, Random random) {
  constexpr std::array<std::uint32_t, kTroubleKinds> kPercent = {85, 25, 30, 20, 40, 30, 15};
  for (std::size_t kind = 0; kind < kTroubleKinds; ++kind) {
    swarm.trouble[kind] = random.chance(kPercent[kind], 100);
  }
  DiskFaults& faults = swarm.faults;
  if (swarm.has(Trouble::kCrash)) {
    const auto rarity = one_of<std::uint32_t>(random, {60, 150, 400});
    faults.crash_before = {1, rarity};
    faults.crash_middle = {1, rarity};
    faults.crash_after = {1, rarity};
    faults.power_loss_share = one_of<Rate>(random, {{0, 1}, {1, 2}, {1, 1}});
    faults.cache_dropped = {1, 4};
    swarm.crash_between_steps = {1, one_of<std::uint32_t>(random, {15, 30, 80})};
  }
  if (swarm.has(Trouble::kDiskFull)) faults.no_space = {1, 40};
  if (swarm.has(Trouble::kSyncError)) {
    faults.sync_error = {1, one_of<std::uint32_t>(random, {25, 80})};
    faults.folder_sync_error = {1, 50};
    faults.cache_dropped = {1, 2};
  }
  if (swarm.has(Trouble::kOtherError)) {
    faults.write_error = {1, 60};
    faults.change_error = {1, 60};
  }
  if (swarm.has(Trouble::kShortWrite)) {
    faults.short_write = {1, 4};
    faults.reserve_ignored = {1, 3};
  }
  if (swarm.has(Trouble::kReadError)) faults.read_error = {1, 100};
  swarm.trouble_from_the_start = random.chance(1, 2);
}

void draw_work(Swarm& swarm, Random random) {
  bool any = false;
  for (std::uint32_t& weight : swarm.work) {
    weight = one_of<std::uint32_t>(random, {0, 0, 1, 2, 4});
    any = any || weight > 0;
  }
  auto& appends = swarm.work[static_cast<std::size_t>(WorkKind::kAppend)];
  const bool consumes = swarm.work[static_cast<std::size_t>(WorkKind::kConsume)] > 0 ||
                        swarm.work[static_cast<std::size_t>(WorkKind::kTransform)] > 0;
  if (!any || (consumes && appends == 0)) appends = 2;
  swarm.duplicates = one_of<std::uint32_t>(random, {0, 50, 95});
  swarm.conflicts = one_of<std::uint32_t>(random, {0, 10, 30});
  swarm.atomic = one_of<std::uint32_t>(random, {0, 50, 100});
  swarm.commit_ids = one_of<std::uint32_t>(random, {0, 20, 80});
  swarm.groups = one_of<std::uint32_t>(random, {0, 1, 3, 10});
  swarm.keys = one_of<std::uint32_t>(random, {1, 3, 10});
  swarm.ids = one_of<std::uint32_t>(random, {1, 4, 30});
  swarm.in_flight_max = one_of<std::uint32_t>(random, {1, 3, 100});
  swarm.blocks = random.chance(1, 8);
  swarm.quota_bytes = one_of<std::uint64_t>(random, {0, 0, 1500});
  swarm.memory_max = random.chance(1, 10) ? 60'000 : std::uint64_t{1} << 30;
  swarm.opens_producers = random.chance(1, 2);
  swarm.retention = static_cast<std::uint32_t>(random.below(4));
}

}  // namespace

Swarm draw_swarm(Random random) {
  Swarm swarm;
  draw_trouble(swarm, random.split("trouble"));
  draw_work(swarm, random.split("work"));
  swarm.clients = static_cast<std::uint32_t>(random.between(1, 6));
  swarm.ops_max = one_of<std::uint32_t>(random, {1, 3, 6});
  swarm.payload_max = one_of<std::uint32_t>(random, {10, 100, 600});
  swarm.window_seconds = static_cast<std::uint32_t>(random.between(1, 5));
  swarm.lease_ms = one_of<std::uint32_t>(random, {1, 300, 2000});
  swarm.attempts_max = static_cast<std::uint32_t>(random.between(1, 4));
  swarm.step_ms_max = one_of<std::int64_t>(random, {20, 200, 1500});
  swarm.segment_bytes = one_of<std::uint32_t>(random, {1024, 2048, 4096, 8192});
  swarm.snapshot_every_bytes = one_of<std::uint64_t>(random, {1500, 6000, 20'000});
  swarm.reserve_step = one_of<std::uint64_t>(random, {256, 1024, 4096});
  swarm.zero_step = one_of<std::uint64_t>(random, {0, 512, 4096});
  swarm.seal_eagerness = one_of<std::uint32_t>(random, {30, 50, 70});
  return swarm;
}

std::string_view word_of(Trouble trouble) {
  constexpr std::array<std::string_view, kTroubleKinds> kTroubleWords = {
      "crash", "disk_full", "sync_error", "other_error", "short_write", "clock_jump", "read_error"};
  return kTroubleWords.at(static_cast<std::size_t>(trouble));
}

}  // namespace hapax::sim
