#include "postgres/lane_progress.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace hapax::postgres {

namespace {

using Kind = TakenRow::Kind;

Xids joined(const Xids& xids, const Xids& others) {
  Xids all;
  std::set_union(xids.begin(), xids.end(), others.begin(), others.end(), std::back_inserter(all));
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
std::size_t first_unsent(const TakenLane& taken, const std::vector<relay::Outcome>& outcomes) {
  for (std::size_t i = 0; i < taken.rows.size(); ++i) {
    const bool sent = outcomes[i].kind != relay::Outcome::Kind::kNotSent;
    if (taken.rows[i].kind != Kind::kRetry && !sent) return i;
  }
  return taken.rows.size();
}

void advance_late(LaneProgress& progress, const TakenLane& taken, std::size_t counted) {
  const auto is_late = [](const TakenRow& row) { return row.kind == Kind::kLate; };
  const auto counted_end = taken.rows.begin() + static_cast<std::ptrdiff_t>(counted);
  const bool done = taken.all_late && std::none_of(counted_end, taken.rows.end(), is_late);
  const Xids& finished = progress.draining.empty() ? taken.finished : progress.draining;
  if (done) {
    progress.pending = without(progress.pending, finished);
    progress.draining.clear();
    progress.late_to = 0;
    return;
  }
  if (progress.draining.empty()) {
    const auto first = std::find_if(taken.rows.begin(), taken.rows.end(), is_late);
    progress.late_to = first->seq - 1;
    progress.draining = taken.finished;
  }
  for (auto row = taken.rows.begin(); row != counted_end; ++row) {
    if (is_late(*row)) progress.late_to = row->seq;
  }
}

}  // namespace

Advanced advance(const LaneProgress& before, const TakenLane& taken,
                 const std::vector<relay::Outcome>& outcomes) {
  Advanced after{before, first_unsent(taken, outcomes)};
  advance_late(after.progress, taken, after.counted);
  for (std::size_t i = 0; i < after.counted; ++i) {
    if (taken.rows[i].kind != Kind::kFresh) continue;
    // Y6: a row below this one that the snapshot did not see belongs to one of `running`.
    if (after.progress.pos == before.pos) {
      after.progress.pending = joined(after.progress.pending, taken.running);
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

Xids without(const Xids& xids, const Xids& others) {
  Xids rest;
  std::set_difference(xids.begin(), xids.end(), others.begin(), others.end(),
                      std::back_inserter(rest));
  return rest;
}

}  // namespace hapax::postgres
