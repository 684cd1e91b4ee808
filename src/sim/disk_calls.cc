// What each port call does to the image, and which faults it may meet.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/assert.h"
#include "sim/disk.h"

namespace hapax::sim {
namespace {

template <class T>
std::uint64_t amount_of(const Result<T>& answer) {
  if constexpr (std::is_integral_v<T>) return *answer;
  return 0;
}

}  // namespace

template <class T>
Result<T> SimDisk::finish(const Step& step, Result<T> answer) {
  if (answer.ok()) {
    note(step, amount_of(answer), "ok");
  } else {
    note(step, static_cast<std::uint64_t>(answer.error().code),
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

std::optional<Errc> SimDisk::change_failure(const Step& step) {
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
  const Step step = change(handle.process, {Call::kWrite, handle.name, offset, bytes.size()});
  FileImage& file = image_.files.at(handle.id);
  const std::size_t fits = handle.writable ? fitting(file, offset, bytes.size()) : 0;
  if (step.crash && step.crash->when == When::kMiddle) {
    file.write(offset, bytes.substr(0, plan_.dice(InjectedFault::kCrashMiddle).below(fits + 1)));
    note(step, 0, "dies in the middle");
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
  trace_.add(bytes.substr(0, stored));
  if (failure) return finish<std::size_t>(step, failed(step, *failure));
  return finish<std::size_t>(step, stored);
}

Result<std::size_t> SimDisk::read(const Handle& handle, std::uint64_t offset,
                                  std::span<char> into) {
  const Step step = look(handle.process, {Call::kRead, handle.name, offset, into.size()});
  if (step.failure) return finish<std::size_t>(step, failed(step, *step.failure));
  if (plan_.fires(InjectedFault::kReadError, faults().read_error)) {
    return finish<std::size_t>(step, failed(step, Errc::kIo));
  }
  const std::string& bytes = image_.files.at(handle.id).cached();
  if (offset >= bytes.size()) return finish<std::size_t>(step, std::size_t{0});
  return finish<std::size_t>(step, bytes.copy(into.data(), into.size(), offset));
}

Status SimDisk::sync(const Handle& handle) {
  const Step step = change(handle.process, {Call::kSync, handle.name});
  FileImage& file = image_.files.at(handle.id);
  if (step.failure || plan_.fires(InjectedFault::kSyncError, faults().sync_error)) {
    file.fail_sync(loss(InjectedFault::kSyncError, faults().at_failed_sync));
    return finish<Ok>(step, failed(step, Errc::kIo));
  }
  file.sync();
  return finish<Ok>(step, Ok{});
}

Status SimDisk::truncate(const Handle& handle, std::uint64_t size) {
  const Step step = change(handle.process, {Call::kTruncate, handle.name, size});
  if (!handle.writable) return finish<Ok>(step, failed(step, Errc::kIo));
  if (const auto failure = change_failure(step)) return finish<Ok>(step, failed(step, *failure));
  image_.files.at(handle.id).resize(size);
  return finish<Ok>(step, Ok{});
}

Status SimDisk::reserve(const Handle& handle, std::uint64_t size) {
  const Step step = change(handle.process, {Call::kReserve, handle.name, size});
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
  const Step step = look(handle.process, {Call::kSize, handle.name});
  if (step.failure) return finish<std::uint64_t>(step, failed(step, *step.failure));
  return finish<std::uint64_t>(step, std::uint64_t{image_.files.at(handle.id).cached().size()});
}

void SimDisk::close(const Handle& handle) {
  if (process_.dead || handle.process != process_.number) return;
  const auto found = process_.open.find(handle.id);
  HAPAX_ASSERT(found != process_.open.end(), "a file of the living process is counted as open");
  if (--found->second == 0) process_.open.erase(found);
}

Result<SimDisk::Handle> SimDisk::create(std::uint64_t process, std::string_view name) {
  const Step step = change(process, {Call::kCreate, name});
  std::optional<Errc> failure = change_failure(step);
  if (!failure && plan_.fires(InjectedFault::kNoSpace, faults().no_space)) failure = Errc::kNoSpace;
  if (!failure && image_.names.find(name)) failure = Errc::kIo;
  if (failure) return finish<Handle>(step, failed(step, *failure));
  const FileId id = image_.next_id++;
  image_.files.try_emplace(id);
  image_.names.create(name, id);
  Result<Handle> handle = finish<Handle>(step, Handle{process, id, std::string(name), true});
  ++process_.open[id];
  return handle;
}

Result<SimDisk::Handle> SimDisk::open(std::uint64_t process, std::string_view name,
                                      ports::OpenMode mode) {
  if (mode == ports::OpenMode::kCreate) return create(process, name);
  const Step step = look(process, {Call::kOpen, name});
  if (step.failure) return finish<Handle>(step, failed(step, *step.failure));
  const std::optional<FileId> id = image_.names.find(name);
  if (!id) return finish<Handle>(step, failed(step, Errc::kNotFound));
  ++process_.open[*id];
  const bool writable = mode == ports::OpenMode::kReadWrite;
  return finish<Handle>(step, Handle{process, *id, std::string(name), writable});
}

Status SimDisk::rename(std::uint64_t process, std::string_view from, std::string_view to) {
  const Step step = change(process, {Call::kRename, from});
  trace_.add(to);
  if (const auto failure = change_failure(step)) return finish<Ok>(step, failed(step, *failure));
  if (!image_.names.find(from)) return finish<Ok>(step, failed(step, Errc::kNotFound));
  image_.names.rename(from, to);
  return finish<Ok>(step, Ok{});
}

Status SimDisk::remove(std::uint64_t process, std::string_view name) {
  const Step step = change(process, {Call::kRemove, name});
  if (const auto failure = change_failure(step)) return finish<Ok>(step, failed(step, *failure));
  if (!image_.names.find(name)) return finish<Ok>(step, failed(step, Errc::kNotFound));
  image_.names.remove(name);
  return finish<Ok>(step, Ok{});
}

Status SimDisk::sync_folder(std::uint64_t process) {
  const Step step = change(process, {Call::kSyncFolder, ""});
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
  const Step step = look(process, {Call::kList, ""});
  if (step.failure) return finish<List>(step, failed(step, *step.failure));
  List names;
  for (const auto& [name, id] : image_.names.cached()) names.push_back(name);
  return finish<List>(step, std::move(names));
}

// As on a real disk the lock's file is there afterwards, and listed.
Status SimDisk::lock(std::uint64_t process, std::string_view name) {
  const Step step = change(process, {Call::kLock, name});
  if (step.failure) return finish<Ok>(step, failed(step, *step.failure));
  if (process_.locks.contains(name)) return finish<Ok>(step, failed(step, Errc::kLocked));
  if (!image_.names.find(name)) {
    const FileId id = image_.next_id++;
    image_.files.try_emplace(id);
    image_.names.create(name, id);
  }
  process_.locks.emplace(name);
  return finish<Ok>(step, Ok{});
}

void SimDisk::unlock(std::uint64_t process, std::string_view name) {
  if (process_.dead || process != process_.number) return;
  process_.locks.erase(process_.locks.find(name));
}

}  // namespace hapax::sim
