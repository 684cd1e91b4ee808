#include "metrics/meter.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "base/mutex.h"
#include "base/queue_of.h"
#include "base/tenant_frame.h"
#include "wire/op_fields.h"

namespace hapax::metrics {

namespace {

template <class AnyOp>
std::string_view name_of() {
  std::string_view name;
  const auto look = [&]<class Other>(const wire::Named<Other>& named) {
    if constexpr (std::is_same_v<Other, AnyOp>) name = named.name;
  };
  std::apply([&](const auto&... named) { (look(named), ...); }, wire::kOps);
  return name;
}

template <std::size_t... I>
std::vector<std::string_view> op_names(std::index_sequence<I...>) {
  return {name_of<std::variant_alternative_t<I, Op>>()...};
}

template <std::size_t... I>
std::vector<std::string_view> verdict_words(std::index_sequence<I...>) {
  return {word_of(Verdict(std::in_place_index<I>))..., word_of(Verdict(Held{.applied = true}))};
}

// Where a verdict is counted: see words_of_verdicts().
std::size_t place_of(const Verdict& verdict) {
  const auto* held = std::get_if<Held>(&verdict);
  return held != nullptr && held->applied ? std::variant_size_v<Verdict> : verdict.index();
}

const std::vector<std::string_view>& names_of_ops() {
  static const auto kNames = op_names(std::make_index_sequence<std::variant_size_v<Op>>{});
  return kNames;
}

const std::vector<std::string_view>& words_of_verdicts() {
  static const auto kWords =
      verdict_words(std::make_index_sequence<std::variant_size_v<Verdict>>{});
  return kWords;
}

std::vector<double> latencies() {
  return {0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
          0.01,    0.025,    0.05,    0.1,    0.25,    0.5,    1,     2.5,    10};
}

const std::size_t kFreshKey = Verdict(Appended{}).index();
const std::size_t kDuplicateKey = Verdict(Duplicate{}).index();

// Where the verdict of an operation that asks a queue for a job is counted. A plain key has the
// words of a message id. Nothing: it came to no answer.
std::optional<std::size_t> place_in_queue(const Op& op, const Verdict& verdict) {
  if (!std::holds_alternative<Set>(op)) return verdict.index();
  const auto* held = std::get_if<Held>(&verdict);
  if (held == nullptr) return std::nullopt;
  return held->applied ? kFreshKey : kDuplicateKey;
}

bool is_duplicate(std::size_t place) {
  static const std::size_t kClaim = Verdict(DuplicateClaim{}).index();
  return place == kDuplicateKey || place == kClaim;
}

}  // namespace

Meter::Meter()
    : commit_seconds_(latencies()),
      commit_ops_({1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1'024, 4'096, 16'384, 65'536}),
      duplicate_age_seconds_({0.1, 1, 10, 60, 300, 1'800, 3'600, 6 * 3'600, 86'400, 7 * 86'400,
                              30 * 86'400, 365 * 86'400}),
      sync_seconds_(latencies()),
      sync_bytes_({1'024, 4'096, 16'384, 65'536, 262'144, 1'048'576, 4'194'304, 16'777'216}) {}

void Meter::synced(std::chrono::nanoseconds took, std::uint64_t bytes) {
  sync_seconds_.observe(std::chrono::duration<double>(took).count());
  sync_bytes_.observe(static_cast<double>(bytes));
}

void Meter::answered(std::span<const Op> ops, const Answer& answer, std::chrono::nanoseconds took) {
  commit_seconds_.observe(std::chrono::duration<double>(took).count());
  commit_ops_.observe(static_cast<double>(ops.size()));
  const base::MutexLock lock(mutex_);
  base::StoreName last;
  Counts* counts = nullptr;
  for (std::size_t i = 0; i < ops.size() && i < answer.verdicts.size(); ++i) {
    ++verdicts_[ops[i].index()][place_of(answer.verdicts[i])];
    const auto queue = base::queue_of(ops[i]);
    if (!queue || queue->name.empty()) continue;
    const auto place = place_in_queue(ops[i], answer.verdicts[i]);
    if (!place) continue;
    if (counts == nullptr || *queue != last) {
      last = *queue;
      counts = &counts_of(last);
    }
    ++(*counts)[*place];
    if (is_duplicate(answer.verdicts[i].index())) age(answer.verdicts[i], answer.time);
    const auto* append = std::get_if<Append>(&ops[i]);
    if (append != nullptr) near_misses_.told(*append, answer.verdicts[i], answer.time);
  }
}

Meter::Counts& Meter::counts_of(base::StoreName queue) {
  std::string name = queue.text();
  if (const auto found = queues_.find(name); found != queues_.end()) return found->second;
  std::size_t& own = queues_by_tenant_[std::string(queue.tenant)];
  if (own >= kQueuesMax || queues_.size() + own >= kAllQueuesMax) {
    return queues_[base::StoreName{queue.tenant, kOtherQueues}.text()];
  }
  ++own;
  return queues_[std::move(name)];
}

void Meter::age(const Verdict& verdict, Time now) {
  const auto* record = std::get_if<Duplicate>(&verdict);
  const Time first =
      record != nullptr ? record->first_seen : std::get<DuplicateClaim>(verdict).settled_at;
  duplicate_age_seconds_.observe(std::chrono::duration<double>(now - first).count());
}

void Meter::know(NearMisses::Windows windows) {
  const base::MutexLock lock(mutex_);
  near_misses_.know(std::move(windows));
}

std::uint64_t Meter::near_misses() const {
  const base::MutexLock lock(mutex_);
  return near_misses_.count();
}

void Meter::responded(unsigned status) {
  responses_[std::min(status / 100, 5U)].fetch_add(1, std::memory_order_relaxed);
}

std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> Meter::verdicts() const {
  std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> all;
  const base::MutexLock lock(mutex_);
  for (std::size_t op = 0; op < kOps; ++op) {
    for (std::size_t verdict = 0; verdict < kVerdicts; ++verdict) {
      const std::uint64_t count = verdicts_[op][verdict];
      if (count != 0) all[{names_of_ops()[op], words_of_verdicts()[verdict]}] += count;
    }
  }
  return all;
}

// Who counts commits waits for a copy of some of the queues, never for one of all.
std::vector<std::pair<std::string, Meter::Counts>> Meter::some_queues(
    const std::string& behind) const {
  constexpr std::size_t kSome = 64;
  std::vector<std::pair<std::string, Counts>> some;
  const base::MutexLock lock(mutex_);
  for (auto at = queues_.upper_bound(behind); at != queues_.end() && some.size() < kSome; ++at) {
    some.emplace_back(at->first, at->second);
  }
  return some;
}

void Meter::each_queue(const std::function<void(const Queue&)>& visit) const {
  for (auto some = some_queues(""); !some.empty(); some = some_queues(some.back().first)) {
    for (const auto& [name, counts] : some) {
      Queue queue{.name = name};
      for (std::size_t verdict = 0; verdict < kVerdicts; ++verdict) {
        if (counts[verdict] == 0) continue;
        queue.checks[words_of_verdicts()[verdict]] += counts[verdict];
        if (is_duplicate(verdict)) queue.duplicates += counts[verdict];
      }
      visit(queue);
    }
  }
}

}  // namespace hapax::metrics
