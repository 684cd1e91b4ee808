// An arbitrary file under a snapshot's name: it is used only if it is whole, else the journal alone
// tells everything.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/snapshotter.h"
#include "journal/names.h"
#include "sim/disk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hapax::sim::SimDisk disk{hapax::sim::Random(1)};
  hapax::sim::SimFolder folder(disk);
  const auto file = folder.open(hapax::journal::snapshot_name(5), hapax::ports::OpenMode::kCreate);
  if (!file) std::abort();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  hapax::ignore((*file)->write_at(0, bytes), "the simulated disk has no faults here");
  const hapax::journal::Identity identity;  // All zeros, as in the corpus.
  std::unique_ptr<hapax::core::State> state;
  std::vector<std::string> lines;
  const auto loaded = hapax::engine::load_snapshot(folder, identity, 2, state, lines);
  if (loaded && loaded->lsn.value == 0 && lines.empty()) std::abort();  // Passed over in silence.
  return 0;
}
