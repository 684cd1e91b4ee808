#include "delivery/attempt_pages.h"

#include <algorithm>

#include "base/format.h"
#include "delivery/workflow_streams.h"

namespace hapax::delivery {

namespace {

constexpr std::uint32_t kRecordsAtOnce = 1'000;

// A record of the log holds fewer attempts than this, so a position names one attempt.
constexpr std::uint64_t kPositionsPerRecord = 2 * kAttemptsPerRecord;

std::uint64_t position_of(Sequence sequence, std::size_t index) {
  return sequence.value * kPositionsPerRecord + index;
}

bool takes(const AttemptQuery& query, const Attempt& attempt) {
  return (!query.keys || query.keys->contains(attempt.key)) &&
         (!query.outcome || *query.outcome == attempt.outcome) &&
         (!query.endpoint || *query.endpoint == attempt.endpoint);
}

class Reading {
 public:
  Reading(const AttemptQuery& query, std::uint64_t bytes_left)
      : query_(query), bytes_left_(bytes_left) {}

  // Whether the page goes on behind that record.
  bool look_at(const Record& record) {
    if (record.time > query_.until) return false;
    auto logged = read_attempts(record.payload, record.time);
    (logged ? knows_some_ : knows_not_all_) = true;
    for (std::size_t i = 0; logged && i < logged->size(); ++i) {
      const std::uint64_t position = position_of(record.sequence, i);
      if (position < query_.from || !takes(query_, (*logged)[i].attempt)) continue;
      if (page_.attempts.size() == query_.max) {
        page_.next = position;
        return false;
      }
      page_.attempts.push_back({position, std::move((*logged)[i])});
    }
    if (record.payload.size() < bytes_left_) {
      bytes_left_ -= record.payload.size();
      return true;
    }
    page_.next = position_of(record.sequence.next(), 0);
    return false;
  }
  // Whoever may append to a log must not keep others from reading the rest of it.
  [[nodiscard]] bool knows_none() const { return knows_not_all_ && !knows_some_; }
  [[nodiscard]] AttemptPage page() && { return std::move(page_); }

 private:
  const AttemptQuery& query_;
  std::uint64_t bytes_left_;
  bool knows_some_ = false;     // records that are of a log
  bool knows_not_all_ = false;  // others
  AttemptPage page_;
};

}  // namespace

Result<AttemptPage> find_attempts(Store& store, std::string_view stream, const AttemptQuery& query,
                                  std::uint64_t bytes_max) {
  HAPAX_TRY(const StreamStats stats, store.describe(stream));
  Sequence from = std::max(stats.first, Sequence{query.from / kPositionsPerRecord});
  if (query.since > Time::min()) {
    HAPAX_TRY(from, first_since(store, stream, from, stats.last.next(), query.since));
  }
  const bool from_begin = from == stats.first;
  Reading reading(query, bytes_max);
  for (bool more = true; more && from <= stats.last;) {
    HAPAX_TRY(const Records found,
              store.read({.stream = stream, .from = from, .max = kRecordsAtOnce}));
    if (found.records.empty()) break;
    for (const Record& record : found.records) {
      more = reading.look_at(record);
      if (!more) break;
      from = record.sequence.next();
    }
  }
  if (from_begin && reading.knows_none()) {
    return Error{Errc::kPreconditionFailed,
                 base::format("stream '{}' is not a log of attempts", stream)};
  }
  AttemptPage page = std::move(reading).page();
  // What the byte limit left over may be nothing.
  if (page.next && *page.next >= position_of(stats.last.next(), 0)) page.next.reset();
  return page;
}

}  // namespace hapax::delivery
