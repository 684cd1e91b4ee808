// The calls that a simulated disk gets: each has a number, is told to who watches, and goes into
// the hash of the run with its name, place, length and answer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include <hapax/result.h>

#include "sim/faults.h"
#include "sim/trace.h"

namespace hapax::sim {

enum class DiskCall : std::uint8_t {
  kWrite,
  kSync,
  kTruncate,
  kReserve,
  kCreate,
  kRename,
  kRemove,
  kSyncFolder,
  kLock,
  kOpen,
  kRead,
  kSize,
  kList,
};
[[nodiscard]] std::string_view word_of(DiskCall call);

// One call, and what its plan says of it.
struct CallStep {
  DiskCall call = DiskCall::kWrite;
  std::string_view name;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t number = 0;
  std::optional<CrashPoint> crash = {};
  std::optional<Errc> failure = {};
};

// What a call is told that fails.
[[nodiscard]] Error failed(const CallStep& step, Errc code);

class CallLog {
 public:
  // Changes and looks are numbered apart, from 0.
  [[nodiscard]] std::uint64_t next_change() { return changes_++; }
  [[nodiscard]] std::uint64_t next_look() { return looks_++; }
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  [[nodiscard]] std::uint64_t looks() const { return looks_; }

  void note(const CallStep& step, std::uint64_t outcome, std::string_view word);
  void say(std::string_view line) const {
    if (watcher_) watcher_(line);
  }
  void watch(std::function<void(std::string_view)> line) { watcher_ = std::move(line); }

  [[nodiscard]] RunTrace& trace() { return trace_; }
  [[nodiscard]] std::uint64_t hash() const { return trace_.hash(); }

 private:
  RunTrace trace_;
  std::function<void(std::string_view)> watcher_;
  std::uint64_t changes_ = 0;
  std::uint64_t looks_ = 0;
};

}  // namespace hapax::sim
