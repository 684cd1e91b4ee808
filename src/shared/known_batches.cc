#include "shared/known_batches.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/time_text.h"

namespace hapax::shared {

namespace {

bool lies_before(const KnownBatch& batch, const ports::LogPlace& at) { return batch.at < at; }

}  // namespace

void KnownBatches::add(const KnownBatch& batch) {
  known_.push_back(batch);
  if (known_.size() > kMax) known_.pop_front();
  if (!anew_) return;
  if (!read_from_) read_from_ = batch.at;
  const auto same = std::lower_bound(before_.begin(), before_.end(), batch.at, lies_before);
  if (same == before_.end() || same->at != batch.at || same->mark != batch.mark) return;
  still_there_ = static_cast<std::size_t>(same - before_.begin()) + 1;
}

void KnownBatches::begin_anew() {
  if (!std::exchange(anew_, true)) before_ = std::move(known_);
  known_.clear();
  still_there_ = 0;
  read_from_.reset();
}

// What lies before the first batch that was read is in a snapshot and cannot be compared.
std::size_t KnownBatches::first_lost() const {
  if (still_there_ > 0 || !read_from_) return still_there_;
  const auto comparable =
      std::lower_bound(before_.begin(), before_.end(), *read_from_, lies_before);
  return static_cast<std::size_t>(comparable - before_.begin());
}

std::optional<LostFacts> KnownBatches::end_anew() {
  anew_ = false;
  const std::size_t first = first_lost();
  const std::deque<KnownBatch> before = std::exchange(before_, {});
  if (first >= before.size()) return std::nullopt;
  return LostFacts{before[first].first, before.back().last, before[first].log_time};
}

std::string text_of(const LostFacts& lost) {
  return base::format("the facts {} to {}, written since {}", lost.first.value, lost.last.value,
                      base::rfc3339_seconds(lost.since));
}

}  // namespace hapax::shared
