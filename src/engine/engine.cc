#include "engine/engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/encoding.h"
#include "base/format.h"
#include "base/mutant.h"
#include "core/claims.h"
#include "core/state_codec.h"
#include "core/turn.h"
#include "engine/frames.h"
#include "engine/losses.h"
#include "engine/replay.h"
#include "journal/names.h"
#include "journal/open_store.h"

namespace hapax::engine {

namespace {

constexpr std::size_t kSnapshotCollectWork = 65'536;
constexpr std::int64_t kLookEveryMs = 1'000;      // for dead space
constexpr std::int64_t kLookEveryMaxMs = 64'000;  // while looking does not help
constexpr std::uint64_t kVictimShare = 4;         // emptied when less than a quarter is live

}  // namespace

digest::HashKey key_of(const journal::Identity& identity) {
  digest::HashKey key{};
  static_assert(sizeof identity.hash_key == sizeof key);
  std::memcpy(key.data(), identity.hash_key.data(), sizeof key);
  return key;
}

Engine::Engine(ports::Folder& folder, ports::Clock& clock, const EngineOptions& options,
               const journal::Identity& identity)
    : folder_(folder),
      options_(options),
      identity_(identity),
      key_(key_of(identity)),
      clock_(std::make_unique<LogClock>(clock, options.clock_jump_max)),
      steady_(clock),
      looked_ms_(clock.steady_ms()),
      look_every_ms_(kLookEveryMs) {}

Result<std::unique_ptr<Engine>> Engine::open(ports::Folder& folder, ports::Clock& clock,
                                             ports::Entropy& entropy,
                                             const EngineOptions& options) {
  HAPAX_TRY(std::unique_ptr<ports::Lock> lock, folder.lock(journal::kLockName));
  HAPAX_TRY(const journal::Identity identity,
            journal::open_store(folder, entropy, clock.wall_ms()));
  std::unique_ptr<Engine> engine(new Engine(folder, clock, options, identity));
  engine->lock_ = std::move(lock);

  Read read;
  OpenReport& report = engine->report_;
  HAPAX_TRY(read.snapshot,
            load_snapshot(folder, identity, options.index_shards_log2, read.state, report.lines));
  HAPAX_CHECK(check_below_snapshot(folder, identity, *read.state, read.snapshot));
  report.snapshot_lsn = read.snapshot.lsn.value;

  journal::RecoverOptions recover_options;
  recover_options.snapshot = read.snapshot.lsn;
  recover_options.writer = {options.segment_bytes, options.reserve_step, options.reserve_bytes,
                            options.zero_step};
  recover_options.reserve_bytes = options.reserve_bytes;
  read.state->memory_max = options.memory_max;
  Replay replay(*read.state);
  HAPAX_TRY(journal::Recovered recovered,
            journal::recover(folder, entropy, identity, recover_options, std::ref(replay)));
  report.journal = recovered.report;
  for (const std::string& line : recovered.report.warnings) report.lines.push_back(line);

  read.bytes = recovered.report.bytes;
  read.log_time = recovered.report.log_time;
  engine->writer_ = std::move(recovered.writer);
  engine->files_ = std::make_shared<journal::SegmentFiles>(folder);
  read.end = {engine->writer_->segment_bytes(), engine->writer_->next(), engine->writer_->slot()};
  engine->begin(identity, std::move(read), Machine::Log::kOwn);
  return engine;
}

std::unique_ptr<Engine> Engine::over(ports::Folder& folder, ports::Clock& clock,
                                     std::shared_ptr<journal::SegmentFiles> files,
                                     const journal::Identity& identity, Read read,
                                     const EngineOptions& options) {
  std::unique_ptr<Engine> engine(new Engine(folder, clock, options, identity));
  engine->files_ = std::move(files);
  engine->begin(identity, std::move(read), Machine::Log::kShared);
  return engine;
}

void Engine::begin(const journal::Identity& identity, Read read, Machine::Log log) {
  replayed_bytes_ = read.bytes;
  read.state->memory_max = options_.memory_max;
  const Time last = std::max(read.snapshot.log_time, read.log_time);
  const bool empty = read.end.next == journal::Lsn{1};
  if (read.clock != nullptr) {
    clock_ = std::move(read.clock);
    clock_->follow(last);
  } else if (last > Time{}) {
    // W5: answers may have been given by a time that is this much later than what is durable. An
    // empty store remembers nothing that could end early.
    const Time used = last + (read.alone ? core::kStepMax : Duration{0});
    clock_->start_at(used, empty ? LogClock::Jump::kAccept : options_.clock_jump);
  }
  read.end.log_time = empty ? clock_->now() : last;
  snapshotter_ = std::make_unique<Snapshotter>(
      folder_, identity, *files_, [this](journal::Room room) { set_room(room); },
      options_.reserve_bytes);
  if (read.snapshot.lsn != journal::Lsn{0}) {
    snapshotter_->adopt(read.snapshot.lsn, read.snapshot.parts);
  }
  machine_ =
      std::make_unique<Machine>(std::move(read.state), read.end, key_, *clock_, *files_, log);
}

void Engine::set_room(journal::Room room) {
  if (writer_ != nullptr) writer_->set_room(room);
}

bool Engine::snapshot_due() {
  if (snapshotter_->busy()) return false;
  const std::uint64_t since = replayed_bytes_ + machine_->written_bytes() - snapshot_at_;
  if (since >= options_.snapshot_every_bytes) return true;
  if (!frees_space_ && steady_.steady_ms() - looked_ms_ >= look_every_ms_) look_for_dead_space();
  return frees_space_;
}

// A full disk cannot wait for more journal, and an idle store will not write any. While load comes,
// the snapshots that it causes do, unless most of the journal is dead.
void Engine::look_for_dead_space() {
  const bool idle = looked_at_ == machine_->written_bytes();
  looked_ms_ = steady_.steady_ms();
  looked_at_ = machine_->written_bytes();
  const bool no_room = machine_->writes_refused() || snapshotter_->found_no_room();
  const std::size_t dead = dead_segments() + (no_room && present_segment_is_dead() ? 1 : 0);
  const bool stuck = dead > 0 && dead == std::exchange(dead_, dead);
  look_every_ms_ = stuck ? std::min(look_every_ms_ * 2, kLookEveryMaxMs) : kLookEveryMs;
  pressed_ = dead > 0 && no_room;
  frees_space_ = dead > 0 && (pressed_ || idle || dead > machine_->state().live_bytes.size());
  made_way_ = false;
}

std::size_t Engine::dead_segments() const {
  const auto names = folder_.list();
  if (!names) return 0;
  const auto& live = machine_->state().live_bytes;
  return static_cast<std::size_t>(
      std::count_if(names->begin(), names->end(), [&](const std::string& name) {
        const journal::FileName parsed = journal::parse_name(name);
        const auto number = static_cast<std::uint32_t>(parsed.number);
        return parsed.kind == journal::FileName::Kind::kSegment &&
               number < machine_->next_slot().segment && !live.contains(number);
      }));
}

// L21: on a disk that one segment fills, the one being written is all there is to remove. One that
// is smaller than the reserve is not worth two snapshots.
bool Engine::present_segment_is_dead() const {
  const journal::Slot slot = machine_->next_slot();
  return writer_ != nullptr && slot.offset > options_.reserve_bytes &&
         !machine_->state().live_bytes.contains(slot.segment);
}

void Engine::make_way() {
  if (!frees_space_ || snapshotter_->busy()) return;
  if (pressed_ && present_segment_is_dead()) machine_->begin_segment();
  if (snapshotter_->newest().value + 1 != machine_->next_lsn().value) return;
  if (std::exchange(made_way_, true)) {
    // It was refused. The next look tries again.
    frees_space_ = false;
    set_room(journal::Room::kOrdinary);
    return;
  }
  if (pressed_) set_room(journal::Room::kMayUseReserve);
  machine_->act([](core::Turn& turn) {
    for (const auto& stream : turn.state().streams) {
      if (stream == nullptr) continue;
      turn.emit(core::StreamConfigured{stream->uid, stream->settings});
      return true;
    }
    core::ensure_stream(turn, core::kAuditStream);
    return true;
  });
}

void Engine::begin_snapshot() {
  snapshot_at_ = machine_->written_bytes();
  replayed_bytes_ = 0;
  machine_->collect(kSnapshotCollectWork);
  core::State& state = machine_->state();
  SnapshotImage image;
  image.lsn = journal::Lsn{machine_->next_lsn().value - 1};
  if (image.lsn == journal::Lsn{0}) return;
  image.log_time = machine_->over_until();
  image.state = core::image_of(state);
  image.ids = state.ids.snapshot();
  image.settled = state.settled.snapshot();
  image.segment = machine_->next_slot().segment;
  for (const auto& [segment, bytes] : state.live_bytes) image.live.insert(segment);
  choose_victims(image);
  image.pressed = std::exchange(pressed_, false);
  frees_space_ = false;
  snapshotter_->begin(std::move(image));
}

// Segments of which little is left, and the runs of small streams that keep them; those of large
// ones are found beside the load.
void Engine::choose_victims(SnapshotImage& image) const {
  const core::State& state = machine_->state();
  for (const auto& [segment, bytes] : state.live_bytes) {
    const bool old = segment + 1 < image.segment;
    if (old && bytes * kVictimShare < options_.segment_bytes) image.victims.insert(segment);
  }
  if (image.victims.empty()) return;
  for (const auto& stream : state.streams) {
    if (stream == nullptr || stream->runs.size() > core::kFewRuns) continue;
    for (const core::Run& run : stream->runs) {
      if (image.runs_to_move.size() >= kMoveRunsMax) return;
      if (!image.victims.contains(run.at.segment)) continue;
      image.runs_to_move.push_back({stream->uid, run.first, run.count, run.at, {}});
    }
  }
}

// E5: damage ends the service only if somebody needs what is damaged: the bytes of records that
// were trimmed or given up, and of results that were moved, may be anything.
void Engine::tell_damage(const Moves& moves, core::Turn& turn) {
  const auto tell = [this](const Error& error, base::Where where) {
    Error damage = error;
    [[maybe_unused]] const Error noted = machine_->note_damage(std::move(damage).within(
        base::format("{} offset {}", journal::segment_name(where.segment), where.offset)));
  };
  for (const RunMove& run : moves.damaged_runs) {
    const core::Stream* stream = turn.state().streams[run.stream.value - 1].get();
    if (stream == nullptr) continue;
    const core::Run* known = stream->run_starting_at(run.first);
    if (known == nullptr || known->at != run.from) continue;
    for (std::uint32_t i = 0; i < run.count; ++i) {
      if (!stream->keeps(Sequence{run.first.value + i})) continue;
      if (auto fact = record_in_run(run.frames, i); !fact) tell(fact.error(), run.from);
    }
  }
  for (const ResultMove& result : moves.damaged_results) {
    if (!core::is_live_result(turn.state(), result.hash, result.from, turn.now())) continue;
    std::string_view frame = result.frame;
    if (auto fact = take_frame(frame); !fact) tell(fact.error(), result.from);
  }
}

void Engine::carry_out_moves() {
  if (snapshotter_->busy()) return;
  auto moves = std::make_shared<Moves>(snapshotter_->take_moves());
  if (moves->empty()) return;
  machine_->act([this, moves](core::Turn& turn) {
    tell_damage(*moves, turn);
    for (const RunMove& move : moves->runs) {
      const core::State& state = turn.state();
      const core::Stream* stream = state.streams[move.stream.value - 1].get();
      const core::Run* run = stream == nullptr ? nullptr : stream->run_starting_at(move.first);
      if (run == nullptr || run->at != move.from || run->count != move.count) continue;
      turn.emit(core::RunMoved{move.stream, move.first, move.count, move.frames});
    }
    for (const ResultMove& move : moves->results) {
      if (!core::is_live_result(turn.state(), move.hash, move.from, turn.now())) continue;
      turn.emit(core::ResultMoved{move.hash, move.frame});
    }
    return true;
  });
}

// A start goes on kStepMax ahead of the mark: where log time is now.
void Engine::note_time() {
  if (base::mutant(base::Mutant::kIdleNotMarked)) return;
  writer_->note_time(machine_->read_clock() - core::kStepMax);
}

Status Engine::add_disk_figures(Statistics& stats) const {
  HAPAX_TRY(const journal::SegmentUse use, journal::segments_on_disk(folder_));
  stats.journal_bytes = use.bytes;
  stats.segments = use.segments;
  stats.snapshots = snapshotter_->finished();
  return Ok{};
}

}  // namespace hapax::engine
