#include "base/assert.h"
#include "sim/disk.h"

namespace hapax::sim {
namespace {

void demand_plain(std::string_view name) {
  HAPAX_ASSERT(!name.empty(), "a file name is not empty");
  HAPAX_ASSERT(name.find('/') == std::string_view::npos, "a file name has no slash");
}

}  // namespace

class SimFile final : public ports::File {
 public:
  SimFile(SimDisk& disk, SimDisk::Handle handle) : disk_(disk), handle_(std::move(handle)) {}
  ~SimFile() override {
    const std::lock_guard lock(disk_.port_calls_);
    disk_.close(handle_);
  }

  Result<std::size_t> write_at(std::uint64_t offset, std::string_view bytes) override {
    const std::lock_guard lock(disk_.port_calls_);
    return disk_.write(handle_, offset, bytes);
  }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) const override {
    const std::lock_guard lock(disk_.port_calls_);
    return disk_.read(handle_, offset, into);
  }
  Status sync() override {
    const std::lock_guard lock(disk_.port_calls_);
    return disk_.sync(handle_);
  }
  Status truncate(std::uint64_t size) override {
    const std::lock_guard lock(disk_.port_calls_);
    return disk_.truncate(handle_, size);
  }
  Result<std::uint64_t> size() const override {
    const std::lock_guard lock(disk_.port_calls_);
    return disk_.size(handle_);
  }
  Status reserve(std::uint64_t size) override {
    const std::lock_guard lock(disk_.port_calls_);
    return disk_.reserve(handle_, size);
  }

 private:
  SimDisk& disk_;
  SimDisk::Handle handle_;
};

class SimLock final : public ports::Lock {
 public:
  SimLock(SimDisk& disk, std::uint64_t process, std::string_view name)
      : disk_(disk), process_(process), name_(name) {}
  ~SimLock() override {
    const std::lock_guard lock(disk_.port_calls_);
    disk_.unlock(process_, name_);
  }

 private:
  SimDisk& disk_;
  std::uint64_t process_;
  std::string name_;
};

SimFolder::SimFolder(SimDisk& disk) : disk_(disk), process_(disk.process_.number()) {
  HAPAX_ASSERT(!disk.dead(), "a process begins after restart()");
}

Result<std::unique_ptr<ports::File>> SimFolder::open(std::string_view name, ports::OpenMode mode) {
  demand_plain(name);
  const std::lock_guard lock(disk_.port_calls_);
  HAPAX_TRY(SimDisk::Handle handle, disk_.open(process_, name, mode));
  return std::unique_ptr<ports::File>(std::make_unique<SimFile>(disk_, std::move(handle)));
}

Status SimFolder::rename(std::string_view from, std::string_view to) {
  demand_plain(from);
  demand_plain(to);
  const std::lock_guard lock(disk_.port_calls_);
  return disk_.rename(process_, from, to);
}

Status SimFolder::remove(std::string_view name) {
  demand_plain(name);
  const std::lock_guard lock(disk_.port_calls_);
  return disk_.remove(process_, name);
}

Status SimFolder::sync() {
  const std::lock_guard lock(disk_.port_calls_);
  return disk_.sync_folder(process_);
}

Result<std::vector<std::string>> SimFolder::list() {
  const std::lock_guard lock(disk_.port_calls_);
  return disk_.list(process_);
}

Result<std::unique_ptr<ports::Lock>> SimFolder::lock(std::string_view name) {
  demand_plain(name);
  const std::lock_guard guard(disk_.port_calls_);
  HAPAX_CHECK(disk_.lock(process_, name));
  return std::unique_ptr<ports::Lock>(std::make_unique<SimLock>(disk_, process_, name));
}

std::string SimFolder::describe(std::string_view name) const { return "sim:" + std::string(name); }

}  // namespace hapax::sim
