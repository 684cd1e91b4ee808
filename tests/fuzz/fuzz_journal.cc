// A whole segment of arbitrary bytes: a start refuses or recovers, and never crashes. What it
// recovers, it recovers again.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "journal/names.h"
#include "sim/clock.h"
#include "sim/disk.h"
#include "sim/entropy.h"

namespace {

using hapax::engine::Engine;

hapax::engine::EngineOptions small() {
  hapax::engine::EngineOptions options;
  options.segment_bytes = 4096;
  options.reserve_step = 4096;
  options.index_shards_log2 = 2;
  return options;
}

// The next lsn, or 0 if the start was refused.
std::uint64_t start(hapax::sim::SimDisk& disk) {
  hapax::sim::SimFolder folder(disk);
  hapax::sim::SimClock clock;
  hapax::sim::SimEntropy entropy(hapax::sim::Random(7));
  const auto engine = Engine::open(folder, clock, entropy, small());
  return engine ? (*engine)->machine().next_lsn().value : 0;
}

void overwrite(hapax::sim::SimDisk& disk, std::string_view bytes) {
  hapax::sim::SimFolder folder(disk);
  const auto file =
      folder.open(hapax::journal::segment_name(1), hapax::ports::OpenMode::kReadWrite);
  if (!file) std::abort();
  hapax::ignore((*file)->truncate(0), "the simulated disk has no faults here");
  hapax::ignore((*file)->write_at(0, bytes), "the simulated disk has no faults here");
  hapax::ignore((*file)->sync(), "the simulated disk has no faults here");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hapax::sim::SimDisk disk{hapax::sim::Random(1)};
  start(disk);
  disk.restart();
  overwrite(disk, {reinterpret_cast<const char*>(data), size});
  disk.restart();
  const std::uint64_t first = start(disk);
  disk.restart();
  if (first != 0 && start(disk) != first) std::abort();
  return 0;
}
