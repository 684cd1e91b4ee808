// What one seed is about, drawn before anything else happens: which faults, how often, which kinds
// of work, how large everything is. Most faults are off in most runs: a run with few of them gets
// further and finds more than one with all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/faults.h"
#include "sim/random.h"

namespace hapax::sim {

enum class WorkKind : std::uint8_t {
  kAppend,
  kProducer,
  kClaim,
  kConsume,
  kTransaction,
  kRegister,
  kTransform,  // consume, transform, produce, with a position
  kUpkeep,     // trim, configure, redrive, seek
};
inline constexpr std::size_t kWorkKinds = 8;

enum class Trouble : std::uint8_t {
  kCrash,  // by the disk, inside a call, and by the scheduler, between calls
  kDiskFull,
  kSyncError,
  kOtherError,  // of write, create, rename, remove, truncate
  kShortWrite,
  kClockJump,
  kReadError,
};
inline constexpr std::size_t kTroubleKinds = 7;

struct Swarm {
  std::array<std::uint32_t, kWorkKinds> work{};  // weights
  std::array<bool, kTroubleKinds> trouble{};
  DiskFaults faults;
  Rate crash_between_steps = kNever;
  bool trouble_from_the_start = false;

  std::uint32_t clients = 1;
  std::uint32_t ops_max = 1;        // of a commit
  std::uint32_t ids = 8;            // message ids in use per stream, at a time
  std::uint32_t duplicates = 0;     // percent of appends
  std::uint32_t conflicts = 0;      // percent of duplicates that come with other content
  std::uint32_t atomic = 50;        // percent of commits
  std::uint32_t commit_ids = 30;    // percent of commits
  std::uint32_t groups = 3;         // group keys; 0 = none
  std::uint32_t payload_max = 100;  // bytes of filling
  std::uint32_t window_seconds = 2;
  std::uint32_t lease_ms = 500;
  std::uint32_t attempts_max = 3;
  bool opens_producers = false;       // epochs come from the store, else the clients choose them
  std::uint32_t in_flight_max = 100;  // of a consumer
  bool blocks = false;                // a record's last attempt blocks its consumer
  std::uint64_t quota_bytes = 0;      // of one stream
  std::uint64_t memory_max = std::uint64_t{1} << 30;
  std::uint32_t retention = 0;     // which kind
  std::uint32_t keys = 4;          // of claims
  std::int64_t step_ms_max = 200;  // how far time moves at once

  std::uint32_t segment_bytes = 4096;
  std::uint64_t snapshot_every_bytes = 8192;
  std::uint64_t reserve_step = 1024;
  std::uint64_t zero_step = 1024;
  std::uint32_t seal_eagerness = 50;  // percent of steps that drive the batch on

  [[nodiscard]] bool has(Trouble which) const { return trouble[static_cast<std::size_t>(which)]; }
};

[[nodiscard]] Swarm draw_swarm(Random random);
[[nodiscard]] std::string_view word_of(Trouble trouble);

}  // namespace hapax::sim
