// How the simulated process begins and ends.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "core/state_codec.h"
#include "journal/names.h"
#include "sim/world.h"

namespace hapax::sim {

namespace {

constexpr std::uint32_t kTriesUnderTrouble = 4;
constexpr std::uint32_t kTriesMax = 8;
constexpr std::string_view kStrangersFile = "notes.txt";
constexpr std::string_view kStrangersText = "not of the store";

// Errors that the disk itself was told to give.
std::uint64_t injected(const DiskStats& stats) {
  return stats[InjectedFault::kWriteError] + stats[InjectedFault::kSyncError] +
         stats[InjectedFault::kFolderSyncError] + stats[InjectedFault::kChangeError] +
         stats[InjectedFault::kReadError];
}

}  // namespace

engine::EngineOptions World::engine_options() const {
  engine::EngineOptions options;
  options.segment_bytes = swarm_.segment_bytes;
  options.reserve_step = swarm_.reserve_step;
  options.zero_step = swarm_.zero_step;
  options.reserve_bytes = 2048;
  options.snapshot_every_bytes = swarm_.snapshot_every_bytes;
  options.index_shards_log2 = 2;
  options.memory_max = swarm_.memory_max;
  return options;
}

// Somebody keeps a file of his own in the folder.
void World::put_strangers_file() {
  SimFolder folder(disk_);
  auto file = folder.open(kStrangersFile, ports::OpenMode::kCreate);
  ignore(file->get()->write_at(0, kStrangersText), "there are no faults yet");
  ignore(file->get()->sync(), "there are no faults yet");
  ignore(folder.sync(), "there are no faults yet");
}

void World::start() {
  for (std::uint32_t tries = 0; engine_ == nullptr && !over(); ++tries) {
    if (tries == kTriesMax) return fail("I8", "start", "it does not start without any fault");
    if (tries == kTriesUnderTrouble) disk_.set_faults({});
    if (troubled_) pass_time_while_off();
    if (try_start(tries)) break;
  }
  if (engine_ == nullptr) return;
  if (troubled_) disk_.set_faults(swarm_.faults);
  full_ = false;
  check_start();
}

bool World::try_start(std::uint32_t tries) {
  disk_.restart();
  folder_ = std::make_unique<SimFolder>(disk_);
  const std::uint64_t before = injected(disk_.stats());
  const std::vector<std::string> names = disk_.names();
  try {
    auto opened = engine::Engine::open(*folder_, clock_, entropy_, engine_options());
    if (opened) {
      engine_ = *std::move(opened);
      return true;
    }
    const Error& error = opened.error();
    say(error.text());
    if (error.code == Errc::kIo && injected(disk_.stats()) > before) {
      result_.tally.add("starts that met an error");
    } else if (error.code == Errc::kNoSpace && tries < kTriesUnderTrouble) {
      result_.tally.add("starts on a full disk");
      disk_.set_faults({});
    } else {
      note_refusal(error);
      if (refused_) check_untouched(names);
    }
  } catch (const Crash&) {
    result_.tally.add("crashes during a start");
    marked_time_ = Time{};  // L11: settling a mark may cost the newest one.
  }
  memory_.reset();  // It may have written the tail anew before it ended.
  if (!disk_.dead()) disk_.process_kill();
  return false;
}

void World::note_refusal(const Error& error) {
  const bool right =
      damaged_ && (error.code == Errc::kCorruption || error.code == Errc::kIo ||
                   error.code == Errc::kFormatVersion || error.code == Errc::kNotFound);
  if (!right) return fail("I8", "start", error.text());
  refused_ = true;
  result_.tally.add("damage refused");
}

// M14: what is not understood is left alone, for people to look at.
void World::check_untouched(const std::vector<std::string>& before) {
  const std::vector<std::string> after = disk_.names();
  for (const std::string& name : before) {
    if (std::binary_search(after.begin(), after.end(), name)) continue;
    if (!name.ends_with(".tmp")) fail("I1", name, "was removed by a start that refused");
  }
}

void World::check_start() {
  const engine::OpenReport& report = engine_->report();
  result_.tally.add("starts");
  result_.tally.add("snapshots loaded", report.snapshot_lsn > 0 ? 1 : 0);
  result_.tally.add("torn tails", report.journal.torn_bytes > 0 ? 1 : 0);
  result_.tally.add("tails rewritten", report.journal.rewritten_last > journal::Lsn{} ? 1 : 0);
  result_.tally.add("clean starts", report.journal.clean ? 1 : 0);
  if (disk_.cached(kStrangersFile) != kStrangersText) {
    fail("I1", std::string(kStrangersFile), "a file that is not the store's was touched");
  }
  say(base::format("started, lsn {}, snapshot {}, log time {}", engine_->writer().next().value,
                   report.snapshot_lsn, to_ms(machine().decided_at())));
  begin_life_time();
  // What was written anew lies elsewhere, and the state says where; where a segment was removed by
  // damage, what it superseded may serve again.
  const bool moved = report.journal.rewritten_last > journal::Lsn{} || damaged_;
  if (memory_ && !moved) {
    result_.tally.add("states compared");
    if (core::canonical(machine().state(), memory_->at) != memory_->state) {
      fail("I4", "state", "the recovered state is another one than the state that was left");
    }
  }
  memory_.reset();
  const bool readable = !troubled_ || !swarm_.has(Trouble::kReadError);
  if (!over() && readable && scheduler_.chance(1, 3)) {
    const Contents contents = read_all();
    if (auto found = check_streams(history_, flatten(history_), contents)) {
      fail(found->invariant, found->key, found->what);
    }
  }
}

void World::guarded(const std::function<void()>& act) {
  try {
    act();
  } catch (const Crash&) {
    result_.tally.add("crashes inside a call");
    end_process();
  }
}

void World::die(Exit exit) {
  if (exit == Exit::kPowerLoss) {
    disk_.power_loss();
  } else {
    disk_.process_kill();
  }
  result_.tally.add("crashes between calls");
  end_process();
}

void World::end_process() {
  sealed_ = nullptr;
  if (engine_ == nullptr) return;
  // Nothing was under way: the next process must find exactly this.
  if (machine().quiescent() && !machine().has_facts()) {
    const Time at = machine().decided_at();
    memory_ = Memory{core::canonical(machine().state(), at), at};
  }
  end_life_time();
  engine_.reset();
  for (const Attempt* attempt : history_.crash()) workload_.ended(*attempt);
  workload_.crashed();
}

// Everything is written and marked; then the process ends in order.
void World::close_clean() {
  settle_down();
  if (engine_ == nullptr || over()) return;
  note_time();
  mark(journal::MarkKind::kClean);
  if (engine_ == nullptr) return;
  end_process();
  disk_.restart();
}

// One thing goes wrong with the disk while nobody looks. Everything acknowledged was marked before,
// so it must be noticed, or not matter.
void World::do_damage() {
  if (damaged_) return;
  const bool misdirect = damage_.chance(1, 6);
  settle_down();
  if (engine_ == nullptr) return;
  if (misdirect) {
    const std::string segment = journal::segment_name(machine().next_slot().segment);
    if (disk_.cached(segment)) {
      disk_.misdirect_next_write(segment, damage_.below(8) * kSectorBytes);
      SharedSimRequest request = workload_.blank(workload_.clients());
      Append record{.stream = "plain", .payload = "misdirected:"};
      request->ops.emplace_back(record);
      ignore(commit_now(request), "the judges look at it");
    }
  }
  if (engine_ == nullptr) return;
  mark(damage_.chance(1, 2) ? journal::MarkKind::kClean : journal::MarkKind::kRunning);
  if (engine_ == nullptr) return;
  die(misdirect ? Exit::kPowerLoss : Exit::kKill);
  damaged_ = true;
  result_.tally.add("damages");
  if (misdirect) return;
  std::vector<std::string> names = disk_.names();
  std::erase(names, kStrangersFile);
  const std::string name = names[damage_.below(names.size())];
  const std::uint64_t size = disk_.cached(name)->size();
  say(base::format("damage to {} of {} bytes", name, size));
  switch (damage_.below(size == 0 ? 1 : 5)) {
    case 0:
      return disk_.remove_raw(name);
    case 1:
      return disk_.flip_bit(name, damage_.below(size * 8));
    case 2: {
      const std::uint64_t from = damage_.below(size);
      return disk_.corrupt(name, from,
                           1 + damage_.below(std::min<std::uint64_t>(size - from, 600)));
    }
    case 3:
      return disk_.truncate_raw(name, damage_.below(size));
    default:
      if (disk_.can_lose_write(name)) disk_.lose_last_write(name);
  }
}

}  // namespace hapax::sim
