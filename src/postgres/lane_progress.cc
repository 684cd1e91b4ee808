#include "postgres/lane_progress.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace hapax::postgres {

namespace {

using Kind = TakenRow::Kind;

// Y6: one that was running before keeps where its rows begin.
std::vector<PendingTransaction> joined(const std::vector<PendingTransaction>& pending,
                                       const Xids& running, std::int64_t since) {
  std::vector<PendingTransaction> more;
  for (const std::uint64_t xid : running) more.push_back({xid, since});
  std::vector<PendingTransaction> all;
  std::set_union(
      pending.begin(), pending.end(), more.begin(), more.end(), std::back_inserter(all),
      [](const PendingTransaction& a, const PendingTransaction& b) { return a.xid < b.xid; });
  return all;
}

// Numbers, whatever stands between them.
Xids numbers_in(std::string_view text) {
  Xids all;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at < end) {
    std::uint64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error == std::errc{}) all.push_back(number);
    at = error == std::errc{} ? next : at + 1;
  }
  return all;
}

// The first late or fresh row that was not sent.
std::size_t first_unsent(const TakenLane& taken, const std::vector<relay::SendOutcome>& outcomes) {
  for (std::size_t i = 0; i < taken.rows.size(); ++i) {
    const bool sent = outcomes[i].kind != relay::SendOutcome::Kind::kNotSent;
    if (taken.rows[i].kind != Kind::kRetry && !sent) return i;
  }
  return taken.rows.size();
}

bool is_late(const TakenRow& row) { return row.kind == Kind::kLate; }

const Xids& hunted(const LaneProgress& progress, const TakenLane& taken) {
  return progress.draining.empty() ? taken.finished : progress.draining;
}

// Behind this, rows of `draining` or `finished` may be unsent.
std::int64_t late_begin(const LaneProgress& progress, const TakenLane& taken) {
  if (!progress.draining.empty()) return progress.late_to;
  std::int64_t begin = progress.pos;
  for (const PendingTransaction& each : progress.pending) {
    const bool ended = std::binary_search(taken.finished.begin(), taken.finished.end(), each.xid);
    if (ended) begin = std::min(begin, each.since);
  }
  return begin;
}

void advance_late(LaneProgress& progress, const TakenLane& taken, std::size_t counted) {
  if (hunted(progress, taken).empty() || !taken.late_end) return;
  const Xids xids = hunted(progress, taken);
  const auto counted_end = taken.rows.begin() + static_cast<std::ptrdiff_t>(counted);
  std::int64_t sent_to = *taken.late_end;
  if (std::any_of(counted_end, taken.rows.end(), is_late)) {
    sent_to = late_begin(progress, taken);
    for (auto row = taken.rows.begin(); row != counted_end; ++row) {
      if (is_late(*row)) sent_to = row->seq;
    }
  }
  const bool done = sent_to >= progress.pos;
  if (done) progress.pending = without(std::move(progress.pending), xids);
  progress.draining = done ? Xids{} : xids;
  progress.late_to = done ? 0 : sent_to;
}

}  // namespace

bool has_all_late(const LaneProgress& before, const TakenLane& taken) {
  return hunted(before, taken).empty() || (taken.late_end && *taken.late_end >= before.pos);
}

Advanced advance(const LaneProgress& before, const TakenLane& taken,
                 const std::vector<relay::SendOutcome>& outcomes) {
  Advanced after{before, first_unsent(taken, outcomes)};
  advance_late(after.progress, taken, after.counted);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const bool counts = i < after.counted || taken.rows[i].kind == Kind::kRetry;
    if (counts && outcomes[i].kind == relay::SendOutcome::Kind::kAccepted) ++after.progress.sent;
  }
  for (std::size_t i = 0; i < after.counted; ++i) {
    if (taken.rows[i].kind != Kind::kFresh) continue;
    // Y6: a row below this one that the snapshot did not see belongs to one of `running`.
    if (after.progress.pos == before.pos) {
      after.progress.pending = joined(after.progress.pending, taken.running, before.pos);
    }
    after.progress.pos = taken.rows[i].seq;
  }
  return after;
}

Xids running_in(std::string_view snapshot, std::uint64_t below) {
  const Xids numbers = numbers_in(snapshot);
  if (numbers.size() < 2) return {};
  Xids running(numbers.begin() + 2, numbers.end());
  // xmax is the latest finished one plus one: those above it run, and are not in the list.
  for (std::uint64_t xid = numbers[1]; xid < below; ++xid) running.push_back(xid);
  std::sort(running.begin(), running.end());
  return running;
}

Xids xids_of(std::string_view array) {
  Xids xids = numbers_in(array);
  std::sort(xids.begin(), xids.end());
  return xids;
}

std::string text_of(const Xids& xids) {
  std::string text = "{";
  for (const std::uint64_t xid : xids) {
    if (text.size() > 1) text += ',';
    text += std::to_string(xid);
  }
  return text + "}";
}

std::vector<PendingTransaction> pending_of(std::string_view xids, std::string_view since) {
  const Xids numbers = numbers_in(xids);
  const Xids places = numbers_in(since);
  std::vector<PendingTransaction> all;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool known = i < places.size();
    all.push_back({numbers[i], known ? static_cast<std::int64_t>(places[i]) : 0});
  }
  std::sort(all.begin(), all.end(),
            [](const PendingTransaction& a, const PendingTransaction& b) { return a.xid < b.xid; });
  return all;
}

std::string xids_text_of(const std::vector<PendingTransaction>& pending) {
  Xids xids;
  for (const PendingTransaction& each : pending) xids.push_back(each.xid);
  return text_of(xids);
}

std::string since_text_of(const std::vector<PendingTransaction>& pending) {
  Xids places;
  for (const PendingTransaction& each : pending)
    places.push_back(static_cast<std::uint64_t>(each.since));
  return text_of(places);
}

std::vector<PendingTransaction> without(std::vector<PendingTransaction> pending,
                                        const Xids& others) {
  std::erase_if(pending, [&](const PendingTransaction& each) {
    return std::binary_search(others.begin(), others.end(), each.xid);
  });
  return pending;
}

}  // namespace hapax::postgres
