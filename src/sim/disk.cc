#include "sim/disk.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/assert.h"

namespace hapax::sim {
namespace {

constexpr std::size_t kStaleBytes = 16'384;

template <class T>
std::uint64_t amount_of(const Result<T>& answer) {
  if constexpr (std::is_integral_v<T>) return *answer;
  return 0;
}

}  // namespace

SimDisk::SimDisk(const Random& random, const DiskFaults& faults)
    : plan_(random.split("faults"), faults), damage_(random.split("damage")) {}

void SimDisk::process_kill() { crash(Crash::Kind::kKill, calls()); }

void SimDisk::power_loss() { crash(Crash::Kind::kPowerLoss, calls()); }

void SimDisk::crash(Crash::Kind kind, std::uint64_t call) {
  process_.leave({kind, call});
  const bool power = kind == Crash::Kind::kPowerLoss;
  plan_.count(power ? InjectedFault::kPowerLoss : InjectedFault::kKill);
  if (power) {
    const Loss lost = loss(InjectedFault::kPowerLoss, faults().at_power_loss);
    image_.names.lose_power(lost);
    for (auto& [id, file] : image_.files) file.lose_power(lost);
    for (const auto& [name, id] : image_.names.durable()) {
      log_.trace().add(name);
      log_.trace().add(image_.files.at(id).durable().size());
    }
  }
  log_.trace().add(static_cast<std::uint64_t>(kind));
  log_.say(power ? "power loss" : "kill");
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
  crash(point.kind, point.call);
  throw process_.end();
}

void SimDisk::restart() {
  if (!dead()) process_.leave({Crash::Kind::kKill, calls()});
  const bool cache_stayed = process_.end().kind == Crash::Kind::kKill;
  if (cache_stayed && plan_.fires(InjectedFault::kCacheDropped, faults().cache_dropped))
    drop_caches();
  process_.restart();
  ++plan_.stats().restarts;
  forget_unreachable();
}

void SimDisk::restore(DiskImage image) {
  if (!dead()) process_.leave({Crash::Kind::kKill, calls()});
  image_ = std::move(image);
  restart();
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

CallStep SimDisk::change(std::uint64_t process, CallStep step) {
  process_.demand(process);
  step.number = log_.next_change();
  step.crash = plan_.crash_of_call(step.number);
  // Only a write has a middle: everything else is one step, or has un-synced parts anyway.
  const bool has_middle = step.call == DiskCall::kWrite;
  if (step.crash && step.crash->when == When::kMiddle && !has_middle) {
    step.crash->when = When::kBefore;
  }
  if (step.crash && step.crash->when == When::kBefore) {
    log_.note(step, 0, "dies before it");
    die(*step.crash);
  }
  step.failure = plan_.failure_of_call(step.number);
  return step;
}

CallStep SimDisk::look(std::uint64_t process, CallStep step) {
  process_.demand(process);
  step.number = log_.next_look();
  step.failure = plan_.failure_of_look(step.number);
  return step;
}

Loss SimDisk::loss(InjectedFault fault, const LossOdds& odds) {
  return Loss{plan_.dice(fault), odds, image_.stale, plan_.stats().losses};
}

// A removed file lives as long as a handle, or a power loss, can bring it back.
void SimDisk::forget_unreachable() {
  for (auto at = image_.files.begin(); at != image_.files.end();) {
    if (image_.names.mentions(at->first) || process_.has_open(at->first)) {
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

// --- what each port call does to the image, and which faults it may meet ---

template <class T>
Result<T> SimDisk::finish(const CallStep& step, Result<T> answer) {
  if (answer.ok()) {
    log_.note(step, amount_of(answer), "ok");
  } else {
    log_.note(step, static_cast<std::uint64_t>(answer.error().code),
              hapax::word_of(answer.error().code));
  }
  if (step.crash) die(*step.crash);
  return answer;
}

std::uint64_t SimDisk::used() const {
  std::uint64_t bytes = 0;
  for (const auto& [name, id] : image_.names.cached()) bytes += image_.files.at(id).cached().size();
  return bytes;
}

std::uint64_t SimDisk::room() const {
  if (faults().space_limit == 0) return std::numeric_limits<std::uint64_t>::max();
  return faults().space_limit - std::min(used(), faults().space_limit);
}

std::optional<Errc> SimDisk::change_failure(const CallStep& step) {
  if (step.failure) return step.failure;
  if (plan_.fires(InjectedFault::kChangeError, faults().change_error)) return Errc::kIo;
  return std::nullopt;
}

std::size_t SimDisk::fitting(const FileImage& file, std::uint64_t offset, std::size_t size) const {
  const std::uint64_t end = offset + size;
  const std::uint64_t growth = end - std::min<std::uint64_t>(end, file.cached().size());
  const std::uint64_t missing = growth - std::min(growth, room());
  return size - std::min<std::size_t>(size, missing);
}

Result<std::size_t> SimDisk::write(const Handle& handle, std::uint64_t offset,
                                   std::string_view bytes) {
  const CallStep step =
      change(handle.process, {DiskCall::kWrite, handle.name, offset, bytes.size()});
  FileImage& file = image_.files.at(handle.id);
  const std::size_t fits = handle.writable ? fitting(file, offset, bytes.size()) : 0;
  if (step.crash && step.crash->when == When::kMiddle) {
    file.write(offset, bytes.substr(0, plan_.dice(InjectedFault::kCrashMiddle).below(fits + 1)));
    log_.note(step, 0, "dies in the middle");
    die(*step.crash);
  }
  std::optional<Errc> failure = step.failure;
  if (!handle.writable) failure = Errc::kIo;
  if (!failure && plan_.fires(InjectedFault::kNoSpace, faults().no_space)) failure = Errc::kNoSpace;
  if (!failure && plan_.fires(InjectedFault::kWriteError, faults().write_error))
    failure = Errc::kIo;

  std::size_t stored = fits;
  if (failure) {
    stored = plan_.dice(InjectedFault::kWriteError).below(fits + 1);
  } else if (fits < bytes.size()) {
    plan_.count(InjectedFault::kDiskFull);
    if (fits == 0) failure = Errc::kNoSpace;
  } else if (fits > 1 && plan_.fires(InjectedFault::kShortWrite, faults().short_write)) {
    stored = 1 + plan_.dice(InjectedFault::kShortWrite).below(fits - 1);
  }
  file.write(offset, bytes.substr(0, stored));
  log_.trace().add(bytes.substr(0, stored));
  if (failure) return finish<std::size_t>(step, failed(step, *failure));
  return finish<std::size_t>(step, stored);
}

Result<std::size_t> SimDisk::read(const Handle& handle, std::uint64_t offset,
                                  std::span<char> into) {
  const CallStep step = look(handle.process, {DiskCall::kRead, handle.name, offset, into.size()});
  if (step.failure) return finish<std::size_t>(step, failed(step, *step.failure));
  if (plan_.fires(InjectedFault::kReadError, faults().read_error)) {
    return finish<std::size_t>(step, failed(step, Errc::kIo));
  }
  const std::string& bytes = image_.files.at(handle.id).cached();
  if (offset >= bytes.size()) return finish<std::size_t>(step, std::size_t{0});
  return finish<std::size_t>(step, bytes.copy(into.data(), into.size(), offset));
}

Status SimDisk::sync(const Handle& handle) {
  const CallStep step = change(handle.process, {DiskCall::kSync, handle.name});
  FileImage& file = image_.files.at(handle.id);
  if (step.failure || plan_.fires(InjectedFault::kSyncError, faults().sync_error)) {
    file.fail_sync(loss(InjectedFault::kSyncError, faults().at_failed_sync));
    return finish<Ok>(step, failed(step, Errc::kIo));
  }
  file.sync();
  return finish<Ok>(step, Ok{});
}

Status SimDisk::truncate(const Handle& handle, std::uint64_t size) {
  const CallStep step = change(handle.process, {DiskCall::kTruncate, handle.name, size});
  if (!handle.writable) return finish<Ok>(step, failed(step, Errc::kIo));
  if (const auto failure = change_failure(step)) return finish<Ok>(step, failed(step, *failure));
  image_.files.at(handle.id).resize(size);
  return finish<Ok>(step, Ok{});
}

Status SimDisk::reserve(const Handle& handle, std::uint64_t size) {
  const CallStep step = change(handle.process, {DiskCall::kReserve, handle.name, size});
  if (!handle.writable) return finish<Ok>(step, failed(step, Errc::kIo));
  FileImage& file = image_.files.at(handle.id);
  const std::uint64_t growth = size - std::min<std::uint64_t>(size, file.cached().size());
  std::optional<Errc> failure = step.failure;
  if (!failure && growth > room()) {
    plan_.count(InjectedFault::kDiskFull);
    failure = Errc::kNoSpace;
  }
  if (!failure && plan_.fires(InjectedFault::kNoSpace, faults().no_space)) failure = Errc::kNoSpace;
  if (failure) {
    // As on ext4: part of the space may have been set aside before there was no more.
    const std::uint64_t part =
        plan_.dice(InjectedFault::kNoSpace).below(std::min(growth, room()) + 1);
    file.resize(file.cached().size() + part);
    return finish<Ok>(step, failed(step, *failure));
  }
  const bool ignored = plan_.fires(InjectedFault::kReserveIgnored, faults().reserve_ignored);
  if (!ignored) file.resize(file.cached().size() + growth);
  return finish<Ok>(step, Ok{});
}

Result<std::uint64_t> SimDisk::size(const Handle& handle) {
  const CallStep step = look(handle.process, {DiskCall::kSize, handle.name});
  if (step.failure) return finish<std::uint64_t>(step, failed(step, *step.failure));
  return finish<std::uint64_t>(step, std::uint64_t{image_.files.at(handle.id).cached().size()});
}

void SimDisk::close(const Handle& handle) {
  if (process_.is(handle.process)) process_.close(handle.id);
}

Result<SimDisk::Handle> SimDisk::create(std::uint64_t process, std::string_view name) {
  const CallStep step = change(process, {DiskCall::kCreate, name});
  std::optional<Errc> failure = change_failure(step);
  if (!failure && plan_.fires(InjectedFault::kNoSpace, faults().no_space)) failure = Errc::kNoSpace;
  if (!failure && image_.names.find(name)) failure = Errc::kIo;
  if (failure) return finish<Handle>(step, failed(step, *failure));
  const FileId id = image_.next_id++;
  image_.files.try_emplace(id);
  image_.names.create(name, id);
  Result<Handle> handle = finish<Handle>(step, Handle{process, id, std::string(name), true});
  process_.open(id);
  return handle;
}

Result<SimDisk::Handle> SimDisk::open(std::uint64_t process, std::string_view name,
                                      ports::OpenMode mode) {
  if (mode == ports::OpenMode::kCreate) return create(process, name);
  const CallStep step = look(process, {DiskCall::kOpen, name});
  if (step.failure) return finish<Handle>(step, failed(step, *step.failure));
  const std::optional<FileId> id = image_.names.find(name);
  if (!id) return finish<Handle>(step, failed(step, Errc::kNotFound));
  process_.open(*id);
  const bool writable = mode == ports::OpenMode::kReadWrite;
  return finish<Handle>(step, Handle{process, *id, std::string(name), writable});
}

Status SimDisk::rename(std::uint64_t process, std::string_view from, std::string_view to) {
  const CallStep step = change(process, {DiskCall::kRename, from});
  log_.trace().add(to);
  if (const auto failure = change_failure(step)) return finish<Ok>(step, failed(step, *failure));
  if (!image_.names.find(from)) return finish<Ok>(step, failed(step, Errc::kNotFound));
  image_.names.rename(from, to);
  return finish<Ok>(step, Ok{});
}

Status SimDisk::remove(std::uint64_t process, std::string_view name) {
  const CallStep step = change(process, {DiskCall::kRemove, name});
  if (const auto failure = change_failure(step)) return finish<Ok>(step, failed(step, *failure));
  if (!image_.names.find(name)) return finish<Ok>(step, failed(step, Errc::kNotFound));
  image_.names.remove(name);
  return finish<Ok>(step, Ok{});
}

Status SimDisk::sync_folder(std::uint64_t process) {
  const CallStep step = change(process, {DiskCall::kSyncFolder, ""});
  if (step.failure || plan_.fires(InjectedFault::kFolderSyncError, faults().folder_sync_error)) {
    image_.names.fail_sync(loss(InjectedFault::kFolderSyncError, faults().at_failed_sync));
    return finish<Ok>(step, failed(step, Errc::kIo));
  }
  image_.names.sync();
  forget_unreachable();
  return finish<Ok>(step, Ok{});
}

Result<std::vector<std::string>> SimDisk::list(std::uint64_t process) {
  using List = std::vector<std::string>;
  const CallStep step = look(process, {DiskCall::kList, ""});
  if (step.failure) return finish<List>(step, failed(step, *step.failure));
  List names;
  for (const auto& [name, id] : image_.names.cached()) names.push_back(name);
  return finish<List>(step, std::move(names));
}

// As on a real disk the lock's file is there afterwards, and listed.
Status SimDisk::lock(std::uint64_t process, std::string_view name) {
  const CallStep step = change(process, {DiskCall::kLock, name});
  if (step.failure) return finish<Ok>(step, failed(step, *step.failure));
  if (process_.locks(name)) return finish<Ok>(step, failed(step, Errc::kLocked));
  if (!image_.names.find(name)) {
    const FileId id = image_.next_id++;
    image_.files.try_emplace(id);
    image_.names.create(name, id);
  }
  process_.lock(name);
  return finish<Ok>(step, Ok{});
}

void SimDisk::unlock(std::uint64_t process, std::string_view name) {
  if (process_.is(process)) process_.unlock(name);
}

}  // namespace hapax::sim
