// What is counted while commits are answered. What it costs does not depend on how much is stored.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/ops.h>
#include <hapax/verdicts.h>

#include "base/mutex.h"
#include "base/tenant_frame.h"
#include "metrics/histogram.h"
#include "metrics/near_misses.h"

namespace hapax::metrics {

// Of a tenant, with figures of their own; then one for all the others of that tenant.
inline constexpr std::size_t kQueuesMax = 1'000;
inline constexpr std::size_t kAllQueuesMax = 20'000;  // of all tenants; one has at most the rest
inline constexpr std::string_view kOtherQueues = "(others)";

class Meter {
 public:
  Meter();

  // A commit was answered. Names are as the store knows them.
  void answered(std::span<const Op> ops, const Answer& answer, std::chrono::nanoseconds took);
  void failed() { failures_.fetch_add(1, std::memory_order_relaxed); }
  void synced(std::chrono::nanoseconds took, std::uint64_t bytes);  // the journal was
  void responded(unsigned status);                                  // to a request over HTTP
  void know(NearMisses::Windows windows);                           // of the streams there are

  // By operation and word of the verdict.
  [[nodiscard]] std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> verdicts()
      const;
  // Of appends, claims and plain keys that stand for a job, by stream, scope or queue, by word.
  struct Queue {
    std::string name;
    std::map<std::string_view, std::uint64_t> checks;
    std::uint64_t duplicates = 0;
  };
  // By name. Whoever visits may take its time: commits are counted meanwhile.
  void each_queue(const std::function<void(const Queue&)>& visit) const;

  [[nodiscard]] std::uint64_t near_misses() const;
  [[nodiscard]] std::uint64_t failures() const { return failures_; }
  [[nodiscard]] std::uint64_t responses(unsigned hundred) const { return responses_.at(hundred); }
  [[nodiscard]] const Histogram& commit_seconds() const { return commit_seconds_; }
  [[nodiscard]] const Histogram& commit_ops() const { return commit_ops_; }
  [[nodiscard]] const Histogram& duplicate_age_seconds() const { return duplicate_age_seconds_; }
  [[nodiscard]] const Histogram& sync_seconds() const { return sync_seconds_; }
  [[nodiscard]] const Histogram& sync_bytes() const { return sync_bytes_; }

 private:
  static constexpr std::size_t kOps = std::variant_size_v<Op>;
  // One more than there are: a register that was held has a word of its own if it was changed.
  static constexpr std::size_t kVerdicts = std::variant_size_v<Verdict> + 1;
  using Counts = std::array<std::uint64_t, kVerdicts>;

  Counts& counts_of(base::StoreName queue) HAPAX_REQUIRES(mutex_);
  // By name, from behind the given one.
  [[nodiscard]] std::vector<std::pair<std::string, Counts>> some_queues(
      const std::string& behind) const;
  void age(const Verdict& verdict, Time now);

  mutable base::Mutex mutex_;
  std::array<Counts, kOps> verdicts_ HAPAX_GUARDED_BY(mutex_){};
  // By name of the store.
  std::map<std::string, Counts, std::less<>> queues_ HAPAX_GUARDED_BY(mutex_);
  std::map<std::string, std::size_t, std::less<>> queues_by_tenant_ HAPAX_GUARDED_BY(mutex_);
  NearMisses near_misses_ HAPAX_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> failures_ = 0;
  std::array<std::atomic<std::uint64_t>, 6> responses_{};
  Histogram commit_seconds_;
  Histogram commit_ops_;
  Histogram duplicate_age_seconds_;
  Histogram sync_seconds_;
  Histogram sync_bytes_;
};

}  // namespace hapax::metrics
