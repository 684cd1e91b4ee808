// A simulated disk with every fault a store must answer for, decided by one seed; and the ports
// (SimFolder) through which a store uses it. One thread only. It must never read a clock, draw from
// anywhere but its Random, or let a process that died change anything more.
//
// The store must survive, losing nothing it acknowledged and needing no help: kill before, in the
// middle of and after every call; power loss with un-synced sectors, sizes and names kept, lost or
// garbled in any legal combination (image.h, S1-S4); short writes; a full disk, also in the middle
// of a write; an ignored reservation. It must stop, and survive the next start, on: an error of
// write, truncate, rename, remove, create; an error of sync, after which the cache shows what the
// disk will never have (S5).
// It must refuse to serve, naming the place: a read error; damage done by flip_bit, corrupt,
// truncate_raw, remove_raw, lose_last_write, misdirect_next_write below anything proven durable.
// Damage is never random here, only asked for: one copy of the data cannot be repaired, so a run
// that mixed damage with crashes could only prove that the store stops. A rolled-back image
// (restore of an older copy) is beyond detection from the inside; only those who remember a later
// state can tell.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ports/files.h"
#include "sim/call_log.h"
#include "sim/crash.h"
#include "sim/disk_process.h"
#include "sim/faults.h"
#include "sim/image.h"
#include "sim/random.h"

namespace hapax::sim {

class SimDisk {
 public:
  explicit SimDisk(const Random& random, const DiskFaults& faults = {});
  SimDisk(const SimDisk&) = delete;
  SimDisk& operator=(const SimDisk&) = delete;

  // The process using the disk ends, between two calls. Its locks are free, its handles throw.
  void process_kill();
  void power_loss();  // Also possible after a kill.
  // A new process may begin; handles of all former ones throw Crash for ever. On a living process
  // it is an orderly exit: everything is closed.
  void restart();
  [[nodiscard]] bool dead() const { return process_.dead(); }

  void set_faults(const DiskFaults& faults) { plan_.set_faults(faults); }
  [[nodiscard]] const DiskFaults& faults() const { return plan_.faults(); }
  [[nodiscard]] const DiskStats& stats() const { return plan_.stats(); }

  // Calls that change something (write, sync, truncate, reserve, create, rename, remove, folder
  // sync, lock) and calls that only look (open, read, size, list) are numbered apart, from 0: the
  // next one has the number calls() or looks(). A crash while looking leaves nothing that a crash
  // at the next change would not.
  [[nodiscard]] std::uint64_t calls() const { return log_.changes(); }
  [[nodiscard]] std::uint64_t looks() const { return log_.looks(); }
  void crash_at_call(std::uint64_t call, When when, Crash::Kind kind);
  // The code is what the call answers, except that a failed sync is always kIo.
  void fail_at_call(std::uint64_t call, Errc code, Lasting lasting = Lasting::kOnce);
  void fail_at_look(std::uint64_t look, Errc code, Lasting lasting = Lasting::kOnce);
  void clear_script() { plan_.clear_script(); }  // What crash_at_ and fail_at_ asked for.

  // Over every call with its name, place, length, bytes and answer.
  [[nodiscard]] std::uint64_t trace_hash() const { return log_.hash(); }
  // One line per call from now on; nullptr ends it.
  void watch(std::function<void(std::string_view)> line) { log_.watch(std::move(line)); }

  // Damage at rest; the file must exist. Bits are counted from the lowest of the first byte.
  void flip_bit(std::string_view name, std::uint64_t bit);
  void corrupt(std::string_view name, std::uint64_t offset, std::uint64_t size);
  void truncate_raw(std::string_view name, std::uint64_t size);
  void remove_raw(std::string_view name);
  void lose_last_write(std::string_view name);  // Of a file whose writes are synced.
  // Hidden by the cache until power_loss() or drop_caches().
  void misdirect_next_write(std::string_view name, std::uint64_t sector_offset);
  void drop_caches();

  [[nodiscard]] DiskImage copy() const { return image_; }
  void restore(DiskImage image);  // Ends the running process; the next one may begin.

  [[nodiscard]] std::uint64_t used() const;  // Bytes in all files, as space_limit counts them.

  // For the test's eyes only: nullopt if there is no such name.
  [[nodiscard]] std::optional<std::string> cached(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> durable(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool can_lose_write(std::string_view name) const;

 private:
  // Of the calls through ports: tests put the store with its threads on this disk, too.
  mutable std::mutex port_calls_;

  friend class SimFolder;
  friend class SimFile;
  friend class SimLock;

  // What a process holds of an open file.
  struct Handle {
    std::uint64_t process = 0;
    FileId id = 0;
    std::string name;
    bool writable = false;
  };

  [[nodiscard]] CallStep change(std::uint64_t process, CallStep step);
  [[nodiscard]] CallStep look(std::uint64_t process, CallStep step);
  template <class T>
  Result<T> finish(const CallStep& step, Result<T> answer);
  [[noreturn]] void die(const CrashPoint& point);
  void crash(Crash::Kind kind, std::uint64_t call);
  [[nodiscard]] Loss loss(InjectedFault fault, const LossOdds& odds);
  [[nodiscard]] std::uint64_t room() const;
  [[nodiscard]] std::optional<Errc> change_failure(const CallStep& step);
  void forget_unreachable();
  [[nodiscard]] FileImage& file_named(std::string_view name);

  Result<std::size_t> write(const Handle& handle, std::uint64_t offset, std::string_view bytes);
  [[nodiscard]] std::size_t fitting(const FileImage& file, std::uint64_t offset,
                                    std::size_t size) const;
  Result<std::size_t> read(const Handle& handle, std::uint64_t offset, std::span<char> into);
  Status sync(const Handle& handle);
  Status truncate(const Handle& handle, std::uint64_t size);
  Status reserve(const Handle& handle, std::uint64_t size);
  Result<std::uint64_t> size(const Handle& handle);
  Result<Handle> create(std::uint64_t process, std::string_view name);
  Result<Handle> open(std::uint64_t process, std::string_view name, ports::OpenMode mode);
  void close(const Handle& handle);
  Status rename(std::uint64_t process, std::string_view from, std::string_view to);
  Status remove(std::uint64_t process, std::string_view name);
  Status sync_folder(std::uint64_t process);
  Result<std::vector<std::string>> list(std::uint64_t process);
  Status lock(std::uint64_t process, std::string_view name);
  void unlock(std::uint64_t process, std::string_view name);

  DiskImage image_;
  FaultPlan plan_;
  Random damage_;
  CallLog log_;
  DiskProcess process_;
};

// The disk as the process of now sees it. The disk must outlive it and every file and lock from it;
// after a crash they throw Crash at every call and may be destroyed at any time.
class SimFolder final : public ports::Folder {
 public:
  explicit SimFolder(SimDisk& disk);

  Result<std::unique_ptr<ports::File>> open(std::string_view name, ports::OpenMode mode) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status remove(std::string_view name) override;
  Status sync() override;
  Result<std::vector<std::string>> list() override;
  Result<std::unique_ptr<ports::Lock>> lock(std::string_view name) override;
  [[nodiscard]] std::string describe(std::string_view name) const override;

 private:
  SimDisk& disk_;
  std::uint64_t process_;
};

}  // namespace hapax::sim
