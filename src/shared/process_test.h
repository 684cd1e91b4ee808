// A process of several over one place in memory, for the tests of shared stores.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "host/clock.h"
#include "host/entropy.h"
#include "shared/memory_log_test.h"
#include "shared/shared_store.h"

namespace hapax::shared {

class ShiftedClock final : public ports::Clock {
 public:
  explicit ShiftedClock(std::int64_t ahead_ms) : ahead_ms_(ahead_ms) {}
  std::int64_t wall_ms() override {
    const std::int64_t frozen_ms = frozen_ms_;
    return (frozen_ms != 0 ? frozen_ms : host_.wall_ms()) + ahead_ms_;
  }
  std::int64_t steady_ms() override {
    const std::int64_t frozen_ms = frozen_steady_ms_;
    return (frozen_ms != 0 ? frozen_ms : host_.steady_ms()) + passed_ms_;
  }
  void jump(std::int64_t ms) { ahead_ms_ += ms; }
  // So much time has passed.
  void pass(std::int64_t ms) {
    ahead_ms_ += ms;
    passed_ms_ += ms;
  }
  // From here on no time passes, and it is this wall time everywhere, except for a process that is
  // ahead.
  void freeze(std::int64_t wall_ms) {
    frozen_steady_ms_ = host_.steady_ms();
    frozen_ms_ = wall_ms;
  }

 private:
  host::HostClock host_;
  std::atomic<std::int64_t> ahead_ms_;
  std::atomic<std::int64_t> passed_ms_ = 0;
  std::atomic<std::int64_t> frozen_ms_ = 0;
  std::atomic<std::int64_t> frozen_steady_ms_ = 0;
};

// As `keep_every`: this process asks the log only when somebody asks it.
inline constexpr std::chrono::milliseconds kNeverKeeps = std::chrono::hours{10'000};

// One process of several.
struct Process {
  explicit Process(MemoryPlace& place, std::uint64_t snapshot_every = std::uint64_t{1} << 30,
                   std::int64_t ahead_ms = 0,
                   std::chrono::milliseconds patience = std::chrono::milliseconds{100},
                   std::chrono::milliseconds keep_every = std::chrono::milliseconds{5},
                   std::chrono::milliseconds answer_within = std::chrono::milliseconds{2'000})
      : log(place), folder(place, log.life()), clock(ahead_ms) {
    SharedOptions options;
    options.engine.segment_bytes = 4'096;
    options.engine.snapshot_every_bytes = snapshot_every;
    options.patience = patience;
    options.tend_every = std::chrono::milliseconds{2};
    options.keep_every = keep_every;
    options.answer_within = answer_within;
    const auto tell = [this](const std::string& line) {
      {
        const std::lock_guard lock(mutex);
        lines.push_back(line);
      }
      if (on_line) on_line();
    };
    store =
        std::move(SharedStore::open(nullptr, {log, folder, clock, entropy}, options, tell)).value();
  }

  Result<Answer> commit(const std::vector<Op>& ops) { return store->commit({.ops = ops}); }
  Verdict one(const Op& op) {
    const auto answer = commit({op});
    return answer ? answer->verdicts.front() : Verdict{Refused{answer.error()}};
  }
  Verdict append(std::string_view id, std::string_view payload = "p") {
    return one(Append{.stream = "s", .payload = payload, .id = id});
  }
  std::vector<std::string> ids() {
    std::vector<std::string> all;
    const auto records = store->read({.stream = "s", .max = 1'000});
    if (!records) return {records.error().text()};
    for (const Record& record : records->records) all.push_back(record.id);
    return all;
  }

  MemoryLog log;
  MemoryFolder folder;
  ShiftedClock clock;
  host::HostEntropy entropy;
  std::mutex mutex;
  std::vector<std::string> lines;
  std::function<void()> on_line;  // set while nothing is told
  std::unique_ptr<SharedStore> store;
};

inline std::string word(const Verdict& verdict) {
  const auto* refused = std::get_if<Refused>(&verdict);
  return refused == nullptr ? std::string(word_of(verdict)) : refused->error.text();
}

inline std::string newest_snapshot(MemoryPlace& place) {
  const std::lock_guard lock(place.mutex);
  std::string name;
  for (const auto& [file, bytes] : place.files) {
    if (file.starts_with("snapshot-") && file.ends_with(".snap")) name = file;
  }
  return name;
}

}  // namespace hapax::shared
