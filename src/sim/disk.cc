#include "sim/disk.h"

#include "base/assert.h"
#include "base/format.h"

namespace hapax::sim {
namespace {

constexpr std::size_t kStaleBytes = 16'384;

}  // namespace

SimDisk::SimDisk(const Random& random, const DiskFaults& faults)
    : plan_(random.split("faults"), faults), damage_(random.split("damage")) {}

void SimDisk::process_kill() { crash(Crash::Kind::kKill); }

void SimDisk::power_loss() { crash(Crash::Kind::kPowerLoss); }

void SimDisk::leave(Crash::Kind kind) {
  process_.dead = true;
  process_.end = {kind, calls_};
  process_.locks.clear();
  process_.open.clear();
}

void SimDisk::crash(Crash::Kind kind) {
  leave(kind);
  const bool power = kind == Crash::Kind::kPowerLoss;
  plan_.count(power ? InjectedFault::kPowerLoss : InjectedFault::kKill);
  if (power) {
    const Loss lost = loss(InjectedFault::kPowerLoss, faults().at_power_loss);
    image_.names.lose_power(lost);
    for (auto& [id, file] : image_.files) file.lose_power(lost);
    for (const auto& [name, id] : image_.names.durable()) {
      trace_.add(name);
      trace_.add(image_.files.at(id).durable().size());
    }
  }
  trace_.add(static_cast<std::uint64_t>(kind));
  if (watcher_) watcher_(power ? "power loss" : "kill");
}

void SimDisk::die(const CrashPoint& point) {
  switch (point.when) {
    case When::kBefore:
      plan_.count(InjectedFault::kCrashBefore);
      break;
    case When::kMiddle:
      plan_.count(InjectedFault::kCrashMiddle);
      break;
    case When::kAfter:
      plan_.count(InjectedFault::kCrashAfter);
      break;
  }
  crash(point.kind);
  process_.end.call = point.call;
  throw process_.end;
}

void SimDisk::restart() {
  if (!process_.dead) leave(Crash::Kind::kKill);
  const bool cache_stayed = process_.end.kind == Crash::Kind::kKill;
  if (cache_stayed && plan_.fires(InjectedFault::kCacheDropped, faults().cache_dropped))
    drop_caches();
  process_.dead = false;
  ++process_.number;
  ++plan_.stats().restarts;
  forget_unreachable();
}

void SimDisk::restore(DiskImage image) {
  if (!process_.dead) leave(Crash::Kind::kKill);
  image_ = std::move(image);
  restart();
}

void SimDisk::demand_alive(std::uint64_t process) const {
  if (process_.dead || process != process_.number) throw process_.end;
}

void SimDisk::crash_at_call(std::uint64_t call, When when, Crash::Kind kind) {
  plan_.crash_at_call({call, when, kind});
}

void SimDisk::fail_at_call(std::uint64_t call, Errc code, Lasting lasting) {
  plan_.fail_at_call({call, code, lasting});
}

void SimDisk::fail_at_look(std::uint64_t look, Errc code, Lasting lasting) {
  plan_.fail_at_look({look, code, lasting});
}

std::string_view SimDisk::word_of(Call call) {
  switch (call) {
    case Call::kWrite:
      return "write";
    case Call::kSync:
      return "sync";
    case Call::kTruncate:
      return "truncate";
    case Call::kReserve:
      return "reserve";
    case Call::kCreate:
      return "create";
    case Call::kRename:
      return "rename";
    case Call::kRemove:
      return "remove";
    case Call::kSyncFolder:
      return "sync folder";
    case Call::kLock:
      return "lock";
    case Call::kOpen:
      return "open";
    case Call::kRead:
      return "read";
    case Call::kSize:
      return "size";
    case Call::kList:
      return "list";
  }
  HAPAX_ASSERT(false, "the call is known");
}

SimDisk::Step SimDisk::change(std::uint64_t process, Step step) {
  demand_alive(process);
  step.number = calls_++;
  step.crash = plan_.crash_of_call(step.number);
  // Only a write has a middle: everything else is one step, or has un-synced parts anyway.
  const bool has_middle = step.call == Call::kWrite;
  if (step.crash && step.crash->when == When::kMiddle && !has_middle) {
    step.crash->when = When::kBefore;
  }
  if (step.crash && step.crash->when == When::kBefore) {
    note(step, 0, "dies before it");
    die(*step.crash);
  }
  step.failure = plan_.failure_of_call(step.number);
  return step;
}

SimDisk::Step SimDisk::look(std::uint64_t process, Step step) {
  demand_alive(process);
  step.number = looks_++;
  step.failure = plan_.failure_of_look(step.number);
  return step;
}

void SimDisk::note(const Step& step, std::uint64_t outcome, std::string_view word) {
  trace_.add(static_cast<std::uint64_t>(step.call));
  trace_.add(step.name);
  trace_.add(step.offset);
  trace_.add(step.length);
  trace_.add(outcome);
  trace_.add(word);
  if (!watcher_) return;
  std::string line = base::format("{} {} {} {}+{}: {}", step.number, word_of(step.call), step.name,
                                  step.offset, step.length, word);
  if (outcome != 0) base::append_format(line, " {}", outcome);
  watcher_(line);
}

Error SimDisk::failed(const Step& step, Errc code) const {
  return Error{code, base::format("{} {} at offset {}, {} bytes: simulated {} at call {}.",
                                  word_of(step.call), step.name, step.offset, step.length,
                                  hapax::word_of(code), step.number)};
}

Loss SimDisk::loss(InjectedFault fault, const LossOdds& odds) {
  return Loss{plan_.dice(fault), odds, image_.stale, plan_.stats().losses};
}

// A removed file lives as long as a handle, or a power loss, can bring it back.
void SimDisk::forget_unreachable() {
  for (auto at = image_.files.begin(); at != image_.files.end();) {
    if (image_.names.mentions(at->first) || process_.open.contains(at->first)) {
      ++at;
      continue;
    }
    const std::string& bytes = at->second.durable();
    if (!bytes.empty()) image_.stale = bytes.substr(0, kStaleBytes);
    at = image_.files.erase(at);
  }
}

FileImage& SimDisk::file_named(std::string_view name) {
  const std::optional<FileId> id = image_.names.find(name);
  HAPAX_ASSERT(id.has_value(), "the file to be damaged exists");
  return image_.files.at(*id);
}

void SimDisk::flip_bit(std::string_view name, std::uint64_t bit) {
  const std::lock_guard lock(port_calls_);
  file_named(name).damage(bit / 8, static_cast<char>(1U << (bit % 8)));
}

void SimDisk::corrupt(std::string_view name, std::uint64_t offset, std::uint64_t size) {
  FileImage& file = file_named(name);
  for (std::uint64_t at = offset; at < offset + size; ++at) {
    file.damage(at, static_cast<char>(damage_.between(1, 255)));  // Every byte really changes.
  }
}

void SimDisk::truncate_raw(std::string_view name, std::uint64_t size) {
  file_named(name).cut(size);
}

void SimDisk::remove_raw(std::string_view name) {
  const std::lock_guard lock(port_calls_);
  HAPAX_ASSERT(image_.names.find(name), "the file to be removed exists");
  image_.names.erase(name);
}

void SimDisk::lose_last_write(std::string_view name) { file_named(name).lose_last_write(); }

void SimDisk::misdirect_next_write(std::string_view name, std::uint64_t sector_offset) {
  file_named(name).misdirect_next_write(sector_offset);
}

void SimDisk::drop_caches() {
  for (auto& [id, file] : image_.files) file.drop_cache();
}

std::optional<std::string> SimDisk::cached(std::string_view name) const {
  const std::optional<FileId> id = image_.names.find(name);
  if (!id) return std::nullopt;
  return image_.files.at(*id).cached();
}

std::vector<std::string> SimDisk::names() const {
  std::vector<std::string> all;
  for (const auto& [name, id] : image_.names.cached()) all.push_back(name);
  return all;
}

bool SimDisk::can_lose_write(std::string_view name) const {
  const std::optional<FileId> id = image_.names.find(name);
  return id && image_.files.at(*id).can_lose_write();
}

std::optional<std::string> SimDisk::durable(std::string_view name) const {
  const auto found = image_.names.durable().find(name);
  if (found == image_.names.durable().end()) return std::nullopt;
  return image_.files.at(found->second).durable();
}

}  // namespace hapax::sim
