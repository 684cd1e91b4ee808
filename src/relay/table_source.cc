#include "relay/table_source.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "relay/headers.h"

namespace hapax::relay {

Result<Leases> TableSource::lease(std::span<const Lease> kept, Duration span) {
  const Lease current{0, fence_};
  const bool keeps = std::find(kept.begin(), kept.end(), current) != kept.end();
  if (!keeps) {
    ++fence_;
    taken_.clear();
  }
  return Leases{.held = {{0, fence_}}, .left = span, .share = 1};
}

Result<TakenBatches> TableSource::next(std::span<const LaneTurn> turns) {
  TakenBatches told;
  for (const LaneTurn& turn : turns) {
    if (turn.lease != Lease{0, fence_}) {
      told.lost.push_back(turn.lease.lane);
      continue;
    }
    if (!turn.outcomes.empty()) HAPAX_CHECK(settle(turn.outcomes));
    if (turn.take == 0 || clock_.steady_ms() < rest_until_ms_) continue;
    HAPAX_TRY(std::vector<Outgoing> rows, take(turn.take));
    if (rows.empty()) continue;
    rows_->stay_up();
    for (const Outgoing& row : rows) taken_.push_back(row.id);
    told.batches.push_back({.lane = 0, .records = std::move(rows)});
  }
  return told;
}

// What is not taken over stays as it is and comes again, with all that is behind it: so the order
// of each key is kept without a place for waiting rows.
Status TableSource::settle(const std::vector<SendOutcome>& outcomes) {
  HAPAX_ASSERT(outcomes.size() == taken_.size(), "each row has its outcome");
  const std::vector<std::string> taken = std::exchange(taken_, {});
  const std::int64_t now = clock_.steady_ms();
  std::vector<RowMarking> marks;
  std::string first;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const SendOutcome& outcome = outcomes[i];
    switch (outcome.kind) {
      case SendOutcome::Kind::kAccepted:
        if (first.empty()) first = taken[i];
        marks.push_back({.id = taken[i], .taken_over = true});
        break;
      case SendOutcome::Kind::kDead:
        last_error_ = base::format("row '{}': {}", taken[i], stored_reason(outcome.reason));
        passed_over_[taken[i]] = now + kPassedOver.count();
        marks.push_back({.id = taken[i], .error = stored_reason(outcome.reason)});
        break;
      case SendOutcome::Kind::kRetry:
      case SendOutcome::Kind::kHeld:
        rest_until_ms_ = std::max(rest_until_ms_, now + outcome.after.count());
        break;
      case SendOutcome::Kind::kNotSent:
        break;
    }
  }
  if (!marks.empty()) HAPAX_CHECK(rows_->mark(marks));
  marked_first_ = std::move(first);
  return Ok{};
}

Result<std::vector<Outgoing>> TableSource::take(std::uint32_t most) {
  const std::int64_t now = clock_.steady_ms();
  std::erase_if(passed_over_, [&](const auto& each) { return each.second <= now; });
  if (passed_over_.size() > kPassedOverMax) {
    return Error{Errc::kLimitExceeded,
                 base::format("more than {} rows cannot be taken over, the last one is {}; mend or "
                              "remove them",
                              kPassedOverMax, last_error_)};
  }
  std::vector<std::string> without;
  for (const auto& [id, until] : passed_over_) without.push_back(id);
  HAPAX_TRY(std::vector<Outgoing> rows, rows_->read(most, without));
  // Taken at once, it would come again and again at full speed. Somebody may also have taken its
  // mark away once, so that it is sent again; so the next look takes it.
  const std::string marked = std::exchange(marked_first_, {});
  if (!rows.empty() && !marked.empty() && rows.front().id == marked) {
    return Error{Errc::kPreconditionFailed,
                 base::format("row '{}' was marked, and has no mark; does a trigger, a rule or row "
                              "security of the table keep the update back?",
                              marked)};
  }
  return rows;
}

Status TableSource::release(std::span<const Lease> /*leases*/) {
  taken_.clear();
  return Ok{};
}

Result<OutboxReport> TableSource::report() {
  HAPAX_TRY(LaneReport lane, rows_->report());
  OutboxReport report;
  report.lanes.push_back(std::move(lane));
  report.dead_letters = passed_over_.size();
  return report;
}

Result<std::vector<TracedEvent>> TableSource::trace(const std::string& /*id*/) {
  return std::vector<TracedEvent>{};
}

Result<std::vector<DeadLetter>> TableSource::dead_letters(std::uint32_t /*most*/) {
  return std::vector<DeadLetter>{};
}

Result<Redriven> TableSource::redrive(std::span<const std::string> /*ids*/) { return Redriven{}; }

}  // namespace hapax::relay
