#include "sqlite/outbox_reports.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "sqlite/outbox_time.h"

namespace hapax::sqlite {

namespace {

constexpr std::int64_t kCountedMax = 100'000;
constexpr std::uint32_t kNeedsForTrace = 4;

}  // namespace

Result<relay::OutboxReport> report_outbox(OutboxFile& file) {
  enum Column {
    kOwner,
    kLeaseUntil,
    kAttempts,
    kWaiting,
    kOldest,
    kRetries,
    kBlockedKeys,
    kDeadLetters,
    kSent,
    kOldestRetry,
    kColumns
  };
  HAPAX_TRY(
      const auto rows,
      file.ask(
          "SELECT l.owner, l.lease_until, l.attempts, "
          "(SELECT count(*) FROM (SELECT 1 FROM {prefix}outbox AS o WHERE o.seq > l.pos "
          "LIMIT ?1)) AS waiting, "
          "(SELECT o.created_at FROM {prefix}outbox AS o WHERE o.seq > l.pos ORDER BY o.seq "
          "LIMIT 1) AS oldest, "
          "(SELECT count(*) FROM {prefix}outbox_retry) AS retries, "
          "(SELECT count(DISTINCT key) FROM {prefix}outbox_retry) AS blocked_keys, "
          "(SELECT count(*) FROM {prefix}outbox_dead) AS dead_letters, l.sent, "
          "(SELECT o.created_at FROM {prefix}outbox_retry AS r JOIN {prefix}outbox AS o "
          "ON o.seq = r.seq ORDER BY r.seq LIMIT 1) AS oldest_retry FROM {prefix}outbox_lane AS l",
          {Value::of(kCountedMax)}));
  const Row& row = rows.at(0);
  const std::int64_t now = wall_ms();
  relay::LaneReport lane;
  if (runs(row[kLeaseUntil].number, now, Duration{0})) {
    lane.owner = row[kOwner].bytes;
    lane.lease_left = Duration{row[kLeaseUntil].number - now};
  }
  lane.attempts = static_cast<std::uint32_t>(row[kAttempts].number);
  lane.waiting = static_cast<std::uint64_t>(row[kWaiting].number);
  lane.more_waiting = row[kWaiting].number == kCountedMax;
  for (const Value& oldest : {row[kOldest], row[kOldestRetry]}) {
    if (oldest.is_null()) continue;
    const Duration waits{now - oldest.number};
    lane.oldest_waiting = std::max(lane.oldest_waiting.value_or(waits), waits);
  }
  lane.retries = static_cast<std::uint64_t>(row[kRetries].number);
  lane.blocked_keys = static_cast<std::uint64_t>(row[kBlockedKeys].number);
  lane.sent = static_cast<std::uint64_t>(row[kSent].number);
  relay::OutboxReport report;
  report.lanes.push_back(std::move(lane));
  report.dead_letters = static_cast<std::uint64_t>(row[kDeadLetters].number);
  HAPAX_TRY(const auto size, file.ask("SELECT page_count * page_size FROM pragma_page_count(), "
                                      "pragma_page_size()",
                                      {}));
  report.outbox_bytes = static_cast<std::uint64_t>(size.at(0)[kOnly].number);
  return report;
}

Result<std::vector<relay::DeadLetter>> list_dead_letters(OutboxFile& file, std::uint32_t most) {
  enum Column { kId, kType, kKey, kAttempts, kReason, kDiedAt, kColumns };
  HAPAX_TRY(const auto rows, file.ask("SELECT id, type, key, attempts, reason, died_at "
                                      "FROM {prefix}outbox_dead ORDER BY seq LIMIT ?1",
                                      {Value::of(most)}));
  std::vector<relay::DeadLetter> letters;
  const std::int64_t now = wall_ms();
  for (const Row& row : rows) {
    letters.push_back({.id = row[kId].bytes,
                       .type = row[kType].bytes,
                       .key = row[kKey].bytes,
                       .attempts = static_cast<std::uint32_t>(row[kAttempts].number),
                       .reason = row[kReason].bytes,
                       .dead_for = Duration{now - row[kDiedAt].number}});
  }
  return letters;
}

Result<std::vector<relay::TracedEvent>> trace_event(OutboxFile& file, const std::string& id) {
  HAPAX_CHECK(file.check_version(kNeedsForTrace));
  enum Column {
    kSeq,
    kLane,
    kType,
    kKey,
    kState,
    kAttempts,
    kLastError,
    kRelay,
    kCreatedAt,
    kNextAt,
    kDiedAt,
    kColumns
  };
  HAPAX_TRY(const auto rows,
            file.ask("SELECT seq, lane, type, key, state, attempts, last_error, relay, created_at, "
                     "next_at, died_at FROM {prefix}outbox_trace WHERE id = ?1 ORDER BY seq",
                     {Value::text(id)}));
  std::vector<relay::TracedEvent> events;
  for (const Row& row : rows) {
    relay::TracedEvent event{.number = row[kSeq].number,
                             .type = row[kType].bytes,
                             .key = row[kKey].bytes,
                             .state = row[kState].bytes,
                             .attempts = static_cast<std::uint32_t>(row[kAttempts].number),
                             .last_error = row[kLastError].bytes,
                             .relay = row[kRelay].bytes,
                             .created_ms = row[kCreatedAt].number};
    if (!row[kLane].is_null()) event.lane = static_cast<std::uint32_t>(row[kLane].number);
    if (!row[kNextAt].is_null()) event.next_ms = row[kNextAt].number;
    if (!row[kDiedAt].is_null()) event.died_ms = row[kDiedAt].number;
    events.push_back(std::move(event));
  }
  return events;
}

namespace {

// The headers of dead letter `d`, which tell how often it was redriven. What are not pairs stays as
// it is.
constexpr std::string_view kReplayedHeaders =
    "CASE WHEN json_valid(coalesce(d.headers, '[]')) AND NOT EXISTS (SELECT 1 FROM "
    "json_each(coalesce(d.headers, '[]')) AS e WHERE e.type <> 'array') THEN (SELECT "
    "json_group_array(json(one)) FROM (SELECT e.value AS one FROM "
    "json_each(coalesce(d.headers, '[]')) AS e WHERE lower(json_extract(e.value, '$[0]')) <> "
    "'hapax-replay' UNION ALL SELECT json_array('hapax-replay', CAST(1 + coalesce((SELECT "
    "CAST(json_extract(e.value, '$[1]') AS INTEGER) FROM json_each(coalesce(d.headers, '[]')) AS e "
    "WHERE lower(json_extract(e.value, '$[0]')) = 'hapax-replay'), 0) AS TEXT)))) ELSE d.headers "
    "END";

}  // namespace

Result<relay::Redriven> redrive_dead_letters(OutboxFile& file, std::span<const std::string> ids) {
  relay::Redriven told;
  const auto act = [&]() -> Status {
    enum Column { kSeq, kId, kColumns };
    HAPAX_TRY(const auto rows,
              file.ask("SELECT seq, id FROM {prefix}outbox_dead ORDER BY seq", {}));
    for (const Row& row : rows) {
      if (!ids.empty() && std::find(ids.begin(), ids.end(), row[kId].bytes) == ids.end()) continue;
      const auto put =
          file.ask(base::format("INSERT INTO {{prefix}}outbox (id, type, key, payload, headers, "
                                "correlation_id, causation_id) SELECT id, type, key, payload, {}, "
                                "correlation_id, causation_id FROM {{prefix}}outbox_dead AS d "
                                "WHERE seq = ?1",
                                kReplayedHeaders),
                   {row[kSeq]});
      // The statement alone is undone: the others are published.
      if (!put && put.error().code == Errc::kInvalidArgument) {
        told.refused.push_back({row[kId].bytes, put.error().text()});
        continue;
      }
      HAPAX_CHECK(put);
      HAPAX_CHECK(file.ask("DELETE FROM {prefix}outbox_dead WHERE seq = ?1", {row[kSeq]}));
      ++told.count;
    }
    return Ok{};
  };
  HAPAX_CHECK(file.in_write(act));
  return told;
}

}  // namespace hapax::sqlite
