// Everything of the embedded store that lives in a data folder, opened and recovered, without
// threads. embedded_store.h drives it with threads, the simulation with a seed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <hapax/embedded.h>

#include "engine/log_clock.h"
#include "engine/machine.h"
#include "engine/snapshotter.h"
#include "journal/recovery.h"
#include "journal/segment_files.h"
#include "journal/writer.h"
#include "ports/clock.h"
#include "ports/entropy.h"
#include "ports/files.h"

namespace hapax::engine {

struct EngineOptions {
  std::uint64_t memory_max = std::uint64_t{4} << 30;
  std::uint32_t segment_bytes = std::uint32_t{256} << 20;
  std::uint64_t reserve_step = std::uint64_t{16} << 20;
  std::uint64_t zero_step = std::uint64_t{256} << 10;
  std::uint64_t reserve_bytes = std::uint64_t{1} << 20;  // kept back for a full disk
  std::uint64_t snapshot_every_bytes = std::uint64_t{256} << 20;
  Duration clock_jump_max{std::chrono::hours{24}};
  LogClock::Jump clock_jump = LogClock::Jump::kRefuse;
  unsigned index_shards_log2 = 12;
  std::chrono::milliseconds mark_every{60'000};  // W5: while nothing is written
};

[[nodiscard]] digest::HashKey key_of(const journal::Identity& identity);

// What a start found; the lines are for people.
struct OpenReport {
  journal::RecoveryReport journal;
  std::uint64_t snapshot_lsn = 0;  // 0 = none
  std::vector<std::string> lines;
};

class Engine {
 public:
  // Locks the folder, recovers, and is ready to serve. Errors say what is damaged and what to do.
  static Result<std::unique_ptr<Engine>> open(ports::Folder& folder, ports::Clock& clock,
                                              ports::Entropy& entropy,
                                              const EngineOptions& options);

  // What a start has read.
  struct Read {
    std::unique_ptr<core::State> state;
    LoadedSnapshot snapshot;
    std::uint64_t bytes = 0;  // of journal behind it
    Time log_time{};          // the newest in the log; means nothing if there is none
    bool alone = true;        // no other process may have answered by a later one
    Machine::LogEnd end;
    std::unique_ptr<LogClock> clock{};  // goes on; none: one starts
  };
  // Over a log that others write, too, and that the caller has read and appends to: there is no
  // writer(). `folder` holds snapshots, and the log's segments for reading.
  static std::unique_ptr<Engine> over(ports::Folder& folder, ports::Clock& clock,
                                      std::shared_ptr<journal::SegmentFiles> files,
                                      const journal::Identity& identity, Read read,
                                      const EngineOptions& options);

  [[nodiscard]] Machine& machine() { return *machine_; }
  [[nodiscard]] journal::Writer& writer() { return *writer_; }
  [[nodiscard]] Snapshotter& snapshotter() { return *snapshotter_; }
  [[nodiscard]] LogClock& clock() { return *clock_; }
  // For the engine that takes the place of this one.
  [[nodiscard]] std::unique_ptr<LogClock> take_clock() { return std::move(clock_); }
  [[nodiscard]] const std::shared_ptr<journal::SegmentFiles>& files() const { return files_; }
  [[nodiscard]] const journal::Identity& identity() const { return identity_; }
  [[nodiscard]] const digest::HashKey& key() const { return key_; }
  [[nodiscard]] const OpenReport& report() const { return report_; }
  [[nodiscard]] const EngineOptions& options() const { return options_; }

  // Whether enough was written since the last snapshot began, or one would free space. The owner
  // then waits until the machine is quiescent, and calls make_way() and, if the machine still is,
  // begin_snapshot().
  [[nodiscard]] bool snapshot_due();
  // R4: a segment goes when it is dead in two snapshots. If nothing was written since the newest,
  // this adds a fact that changes nothing to the batch being built, so that there can be another.
  void make_way();
  void begin_snapshot();
  // What a finished snapshot found worth moving, as facts of the batch being built.
  void carry_out_moves();

  // W5: the next mark takes log time along.
  void note_time();

  // Asks the disk; from any thread.
  [[nodiscard]] Status add_disk_figures(Statistics& stats) const;

 private:
  Engine(ports::Folder& folder, ports::Clock& clock, const EngineOptions& options,
         const journal::Identity& identity);
  void begin(const journal::Identity& identity, Read read, Machine::Log log);
  void set_room(journal::Room room);
  void tell_damage(const Moves& moves, core::Turn& turn);
  void choose_victims(SnapshotImage& image) const;
  void look_for_dead_space();
  [[nodiscard]] std::size_t dead_segments() const;
  [[nodiscard]] bool present_segment_is_dead() const;

  ports::Folder& folder_;
  const EngineOptions options_;
  std::unique_ptr<ports::Lock> lock_;
  const journal::Identity identity_;
  const digest::HashKey key_;
  std::unique_ptr<LogClock> clock_;
  std::shared_ptr<journal::SegmentFiles> files_;
  std::unique_ptr<journal::Writer> writer_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<Snapshotter> snapshotter_;
  OpenReport report_;
  std::uint64_t replayed_bytes_ = 0;  // of journal behind the snapshot a start found
  std::uint64_t snapshot_at_ = 0;     // Machine::written_bytes() when the last one began

  // Dead space: when it was last looked for, and what was found.
  ports::Clock& steady_;
  std::int64_t looked_ms_;
  std::int64_t look_every_ms_;
  std::uint64_t looked_at_ = 0;  // Machine::written_bytes() then
  std::size_t dead_ = 0;         // segments, then
  bool frees_space_ = false;     // a snapshot is due for that
  bool pressed_ = false;         // and the disk is full
  bool made_way_ = false;        // for it
};

}  // namespace hapax::engine
