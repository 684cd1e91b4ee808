// Snapshots: the whole state at one lsn, so that a start reads live state instead of history; and
// what follows from having them: old snapshots, their parts and dead segments are removed, mostly
// dead segments are emptied.
//
// begin() copies the state on its owner's thread, cheaply: what can be millions is handed over as
// chunks that never change, only the rest is encoded (docs/internals/threads.md has the costs).
// step() does the slow work, one file at a time, beside the load.
//
// R1: two snapshots are kept, and every fact and payload since the older one: a damaged newest
//     snapshot costs time, not data.
// R2: a segment is removed only if it was already dead in the state of the older kept snapshot.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <hapax/result.h>

#include "core/state.h"
#include "core/state_codec.h"
#include "journal/format.h"
#include "journal/identity.h"
#include "journal/reserve_file.h"
#include "journal/segment_files.h"
#include "ports/files.h"

namespace hapax::engine {

using IdChunks = core::Remembered<core::IdEntry>::Snapshot;
using SettledChunks = core::Remembered<core::SettledEntry>::Snapshot;

// Live bytes that should leave their segment so that it can go.
struct RunMove {
  core::StreamUid stream;
  Sequence first;
  std::uint32_t count = 0;
  base::Where from;
  std::string frames;
};
struct ResultMove {
  base::Hash128 hash;
  base::Where from;
  std::string frame;
};
struct Moves {
  std::vector<RunMove> runs;
  std::vector<ResultMove> results;
  // With a frame that is not as it was written. Who owns the state knows whether anybody needs it.
  std::vector<RunMove> damaged_runs;
  std::vector<ResultMove> damaged_results;

  [[nodiscard]] bool empty() const {
    return runs.empty() && results.empty() && damaged_runs.empty() && damaged_results.empty();
  }
};

struct SnapshotImage {
  journal::Lsn lsn;  // the last one it contains
  Time log_time{};
  core::StateImage state;
  IdChunks ids;
  SettledChunks settled;
  std::uint32_t segment = 0;          // being written
  std::set<std::uint32_t> live;       // segments with bytes that are needed
  std::set<std::uint32_t> victims;    // segments to be emptied
  std::vector<RunMove> runs_to_move;  // in the victims, of small streams, without their bytes
  bool pressed = false;               // it is made to free space on a full disk
};

inline constexpr std::size_t kMoveRunsMax = 4'096;  // per snapshot

class Snapshotter {
 public:
  // Tells the log's writer who may use the reserve of a full disk.
  using SetRoom = std::function<void(journal::Room)>;
  Snapshotter(ports::Folder& folder, const journal::Identity& identity,
              journal::SegmentFiles& files, SetRoom set_room, std::uint64_t reserve_bytes);

  // The snapshot that the start was made from, with its parts. Others on disk do not count as kept:
  // nobody has verified them.
  void adopt(journal::Lsn snapshot, const std::set<std::uint64_t>& parts);

  // Others may have written since: only parts of finished snapshots are known to be there.
  // REQUIRES: not busy().
  void forget_unfinished();

  // REQUIRES: not busy().
  void begin(SnapshotImage image);
  [[nodiscard]] bool busy() const { return busy_.load(std::memory_order_acquire); }
  // The next piece of work. kNoSpace: this snapshot is given up, the next one may succeed.
  Status step();

  // The newest one that is whole; 0 = none. REQUIRES: not busy().
  [[nodiscard]] journal::Lsn newest() const {
    return kept_.empty() ? journal::Lsn{0} : kept_.back().lsn;
  }
  // What to move, once, after a snapshot. REQUIRES: not busy().
  [[nodiscard]] Moves take_moves();
  [[nodiscard]] std::uint64_t finished() const { return finished_.load(std::memory_order_relaxed); }
  // The disk was too full for the latest one.
  [[nodiscard]] bool found_no_room() const { return no_room_.load(std::memory_order_relaxed); }

 private:
  enum class Phase : std::uint8_t { kParts, kFile, kPrune, kGather };
  struct Kept {
    journal::Lsn lsn;
    std::vector<std::uint64_t> parts;
    std::set<std::uint32_t> dead;  // segments nothing needed any more
  };

  template <class Call>
  auto in_room(const Call& call) -> decltype(call());
  Status write_next_part();
  Status write_file();
  Status write_whole(std::vector<std::uint64_t>& parts);
  Status prune();
  Status gather();
  void find_runs_to_move();
  Status gather_run(RunMove move, std::size_t& bytes);
  Status gather_result(const core::SettledEntry& entry, std::size_t& bytes);
  Status gather_results(std::size_t& bytes);
  template <class Chunk>
  Result<bool> store_chunk(const Chunk& chunk, std::uint64_t number);
  void end();

  ports::Folder& folder_;
  const journal::Identity identity_;
  journal::SegmentFiles& files_;
  const SetRoom set_room_;
  const std::uint64_t reserve_bytes_;
  std::set<std::uint64_t> parts_;  // on disk
  std::deque<Kept> kept_;          // oldest first, two at most
  SnapshotImage image_;
  Phase phase_ = Phase::kParts;
  std::size_t next_chunk_ = 0;
  Moves moves_;
  // Where the next search for results begins.
  struct {
    std::uint64_t serial = 0;  // of the chunk
    std::size_t place = 0;
  } results_from_;
  std::atomic<bool> busy_{false};
  std::atomic<std::uint64_t> finished_{0};
  std::atomic<bool> no_room_{false};
};

// A part's number, from the serial of the chunk it holds.
[[nodiscard]] std::uint64_t id_part(std::uint64_t serial);
[[nodiscard]] std::uint64_t settled_part(std::uint64_t serial);

// Whether a start could be made from this snapshot: it, and every part it refers to, is whole.
[[nodiscard]] Status check_snapshot(ports::Folder& folder, const journal::Identity& identity,
                                    journal::Lsn snapshot);

// Fills an empty state from the newest snapshot that is whole. Damaged ones are named in `lines`.
struct LoadedSnapshot {
  journal::Lsn lsn;  // 0 = there is no snapshot
  Time log_time{};
  std::set<std::uint64_t> parts;
};
[[nodiscard]] Result<LoadedSnapshot> load_snapshot(ports::Folder& folder,
                                                   const journal::Identity& identity,
                                                   unsigned index_shards_log2,
                                                   std::unique_ptr<core::State>& state,
                                                   std::vector<std::string>& lines);

}  // namespace hapax::engine
