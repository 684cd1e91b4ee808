// The one process that may use a simulated disk now, and what dies with it: its locks and its open
// files. Whoever still speaks for a former one is told how that ended.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "sim/crash.h"
#include "sim/image.h"

namespace hapax::sim {

class DiskProcess {
 public:
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] bool dead() const { return dead_; }
  [[nodiscard]] bool is(std::uint64_t process) const { return !dead_ && process == number_; }
  [[nodiscard]] const Crash& end() const { return end_; }  // of the latest that ended
  void demand(std::uint64_t process) const;                // Throws its end unless it lives.

  void leave(const Crash& end);
  void restart();  // The next one begins. REQUIRES: dead()

  void open(FileId id) { ++open_[id]; }
  void close(FileId id);
  [[nodiscard]] bool has_open(FileId id) const { return open_.contains(id); }

  [[nodiscard]] bool locks(std::string_view name) const { return locks_.contains(name); }
  void lock(std::string_view name) { locks_.emplace(name); }
  void unlock(std::string_view name) { locks_.erase(locks_.find(name)); }

 private:
  std::uint64_t number_ = 1;
  bool dead_ = false;
  Crash end_;
  std::set<std::string, std::less<>> locks_;
  std::map<FileId, std::uint32_t> open_;  // How many handles.
};

}  // namespace hapax::sim
