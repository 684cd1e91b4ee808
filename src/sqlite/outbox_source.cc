#include "sqlite/outbox_source.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "relay/headers.h"
#include "relay/pieces.h"
#include "sqlite/outbox_reports.h"
#include "sqlite/outbox_time.h"

namespace hapax::sqlite {

namespace {

using relay::SendOutcome;
using OutcomeKind = relay::SendOutcome::Kind;

constexpr std::uint32_t kNeedsVersion = 5;
constexpr std::uint32_t kLanes = 1;
constexpr std::int64_t kRetriesAtOnce = 50;
// About so much is taken at once; of texts, characters.
constexpr std::int64_t kTakenBytes = std::int64_t{32} << 20;
// What is said to last longer was written while the clock was ahead, and is over.
constexpr Duration kRetryMax{3'600'000};

// Of a record to send. Its place and key are those of the outbox or of the retry.
enum class RecordColumn {
  kSeq,
  kKey,
  kId,
  kType,
  kPayload,
  kCorrelationId,
  kCausationId,
  kHeaders,
  kCreated,
  kGone,
  kAttempts,
  kBlocked,
  kTried,
  kColumns
};
// kId to kCreated, of the outbox AS o.
constexpr std::string_view kContentColumns =
    "o.id, o.type, CAST(o.payload AS BLOB) AS payload, o.correlation_id, "
    "o.causation_id, "
    "CASE WHEN o.headers IS NULL THEN '' "
    "WHEN CASE WHEN json_valid(o.headers) THEN json_type(o.headers) END IS NOT 'array' THEN '!' "
    "ELSE (SELECT group_concat(CASE WHEN h.type = 'array' THEN CASE WHEN "
    "json_array_length(h.value) = 2 AND json_type(h.value, '$[0]') = 'text' AND "
    "json_type(h.value, '$[1]') = 'text' THEN "
    "length(CAST(h.value ->> 0 AS BLOB)) || ':' || (h.value ->> 0) || "
    "length(CAST(h.value ->> 1 AS BLOB)) || ':' || (h.value ->> 1) ELSE '!' END ELSE '!' END, '') "
    "FROM json_each(o.headers) AS h) END AS headers, o.created_at AS created";

}  // namespace

OutboxSource::OutboxSource(OutboxSourceOptions options, OutboxFile file)
    : options_(std::move(options)), file_(std::move(file)), watch_(options_.path) {}

Result<std::unique_ptr<OutboxSource>> OutboxSource::open(OutboxSourceOptions options) {
  HAPAX_TRY(OutboxFile file, OutboxFile::open(options.path, options.prefix, kNeedsVersion));
  return std::unique_ptr<OutboxSource>(new OutboxSource(std::move(options), std::move(file)));
}

Result<relay::Leases> OutboxSource::lease(std::span<const relay::Lease> kept, Duration span) {
  relay::Leases told{.held = {}, .left = span, .share = kLanes};
  const auto act = [&]() -> Status {
    const std::int64_t now = wall_ms();
    enum Column { kOwner, kFence, kLeaseUntil, kColumns };
    HAPAX_TRY(const auto rows,
              file_.ask("SELECT owner, fence, lease_until FROM {prefix}outbox_lane", {}));
    const Row& lane = rows.at(0);
    const bool mine = lane[kOwner].bytes == options_.owner;
    if (!mine && runs(lane[kLeaseUntil].number, now, span)) return Ok{};
    const bool running = mine && lane[kLeaseUntil].number > now;
    const relay::Lease current{0, lane[kFence].number};
    const bool keeps = running && std::find(kept.begin(), kept.end(), current) != kept.end();
    const std::int64_t fence = keeps ? current.fence : current.fence + 1;
    if (!keeps) {
      if (mine) HAPAX_CHECK(forgive());
      taken_.clear();
      HAPAX_CHECK(give_turns(now));
    }
    HAPAX_CHECK(
        file_.ask("UPDATE {prefix}outbox_lane SET owner = ?1, fence = ?2, lease_until = ?3, "
                  "moved_at = CASE WHEN fence = ?2 THEN moved_at ELSE ?4 END",
                  {Value::text(options_.owner), Value::of(fence), Value::of(now + span.count()),
                   Value::of(now)}));
    HAPAX_CHECK(file_.ask("UPDATE {prefix}outbox_retry SET next_at = ?1 WHERE next_at > ?2",
                          {Value::of(now), Value::of(now + kRetryMax.count())}));
    told.held.push_back({0, fence});
    return Ok{};
  };
  HAPAX_CHECK(file_.in_write(act));
  return told;
}

// Y5: who takes its own lane again did not die over what it had taken, and still remembers.
Status OutboxSource::forgive() {
  bool any_new = false;
  for (const Taken& row : taken_) {
    any_new = any_new || row.n == 0;
    if (row.n == 0) continue;
    HAPAX_CHECK(
        file_.ask("UPDATE {prefix}outbox_retry SET taken = 0, attempts = attempts - 1 "
                  "WHERE n = ?1 AND taken <> 0",
                  {Value::of(row.n)}));
  }
  if (!any_new) return Ok{};
  HAPAX_CHECK(file_.ask("UPDATE {prefix}outbox_lane SET attempts = max(attempts - 1, 0)", {}));
  return Ok{};
}

// To the first of every key that has none, because somebody deleted the retry before it.
Status OutboxSource::give_turns(std::int64_t now) {
  HAPAX_CHECK(file_.ask(
      "UPDATE {prefix}outbox_retry AS r SET next_at = ?1 WHERE r.next_at IS NULL AND NOT EXISTS "
      "(SELECT 1 FROM {prefix}outbox_retry AS q WHERE q.key = r.key AND q.n < r.n)",
      {Value::of(now)}));
  return Ok{};
}

Result<bool> OutboxSource::is_anything_there() {
  HAPAX_TRY(
      const auto rows,
      file_.ask("SELECT EXISTS (SELECT 1 FROM {prefix}outbox AS o WHERE o.seq > l.pos) OR EXISTS "
                "(SELECT 1 FROM {prefix}outbox_retry AS r WHERE r.next_at <= ?1) "
                "FROM {prefix}outbox_lane AS l",
                {Value::of(wall_ms())}));
  return rows.at(0)[kOnly].number != 0;
}

Result<relay::TakenBatches> OutboxSource::next(std::span<const relay::LaneTurn> turns) {
  relay::TakenBatches told;
  for (const relay::LaneTurn& turn : turns) {
    if (turn.outcomes.empty()) {  // Whoever only looks keeps no writer waiting.
      HAPAX_TRY(const bool anything, is_anything_there());
      if (!anything) continue;
    }
    const auto act = [&] { return settle_and_take(turn, told); };
    HAPAX_CHECK(file_.in_write(act));
  }
  if (!told.batches.empty()) watch_.stay_up();
  return told;
}

Status OutboxSource::settle_and_take(const relay::LaneTurn& turn, relay::TakenBatches& told) {
  // Y3: nobody else can take the lane while this transaction writes.
  HAPAX_TRY(const auto rows, file_.ask("SELECT fence FROM {prefix}outbox_lane", {}));
  if (rows.at(0)[kOnly].number != turn.lease.fence) {
    told.lost.push_back(turn.lease.lane);
    return Ok{};
  }
  if (!turn.outcomes.empty()) HAPAX_CHECK(settle(turn.outcomes));
  if (turn.take == 0) return Ok{};
  return take(turn, told);
}

Status OutboxSource::settle(const std::vector<SendOutcome>& outcomes) {
  const std::vector<Taken> taken = std::exchange(taken_, {});
  HAPAX_ASSERT(outcomes.size() == taken.size(), "each row has its outcome");
  std::int64_t pos = 0;
  std::int64_t sent = 0;
  bool counts = true;  // What is behind a new row that was not sent does not.
  bool any_new = false;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const bool accepted = outcomes[i].kind == OutcomeKind::kAccepted;
    if (taken[i].n != 0) {
      sent += accepted ? 1 : 0;
      HAPAX_CHECK(settle_retry(taken[i], outcomes[i]));
      continue;
    }
    any_new = true;
    counts = counts && outcomes[i].kind != OutcomeKind::kNotSent;
    if (!counts) continue;
    pos = taken[i].seq;
    sent += accepted ? 1 : 0;
    if (!accepted) HAPAX_CHECK(settle_new(taken[i], outcomes[i]));
  }
  // Y5: what is said of retries says nothing of what was taken with them, and never settled.
  HAPAX_CHECK(
      file_.ask("UPDATE {prefix}outbox_lane SET pos = max(pos, ?1), sent = sent + ?2, "
                "attempts = CASE WHEN ?4 THEN max(min(attempts - 2, ?5), 0) ELSE attempts END, "
                "moved_at = CASE WHEN ?1 > pos OR ?2 > 0 THEN ?3 ELSE moved_at END",
                {Value::of(pos), Value::of(sent), Value::of(wall_ms()),
                 Value::of(any_new ? std::int64_t{1} : std::int64_t{0}),
                 Value::of(std::int64_t{relay::kUnsettledAfterAlone})}));
  return Ok{};
}

Status OutboxSource::settle_new(const Taken& row, const SendOutcome& outcome) {
  if (outcome.kind == OutcomeKind::kDead) return bury(row, outcome);
  const bool held = outcome.kind == OutcomeKind::kHeld;
  HAPAX_CHECK(file_.ask(
      "INSERT INTO {prefix}outbox_retry (seq, key, attempts, next_at, last_error, tried_at) "
      "SELECT ?1, ?2, ?3, CASE WHEN ?2 IS NULL OR NOT EXISTS (SELECT 1 FROM "
      "{prefix}outbox_retry AS r WHERE r.key = ?2) THEN ?4 END, ?5, "
      "CASE WHEN ?3 > 0 THEN ?6 END",
      {Value::of(row.seq), Value::text_or_null(row.key),
       Value::of(held ? 0 : std::int64_t{row.attempt}),
       Value::of(wall_ms() + outcome.after.count()),
       Value::text(relay::stored_reason(outcome.reason)), Value::of(wall_ms())}));
  return Ok{};
}

Status OutboxSource::settle_retry(const Taken& row, const SendOutcome& outcome) {
  if (outcome.kind == OutcomeKind::kRetry) {
    HAPAX_CHECK(
        file_.ask("UPDATE {prefix}outbox_retry SET taken = 0, next_at = ?2, last_error = ?3 "
                  "WHERE n = ?1",
                  {Value::of(row.n), Value::of(wall_ms() + outcome.after.count()),
                   Value::text(relay::stored_reason(outcome.reason))}));
    return Ok{};
  }
  if (outcome.kind == OutcomeKind::kNotSent || outcome.kind == OutcomeKind::kHeld) {
    // Y4: it was not sent, or that costs nothing, so it was no attempt.
    HAPAX_CHECK(
        file_.ask("UPDATE {prefix}outbox_retry SET taken = 0, attempts = attempts - 1, "
                  "next_at = CASE WHEN ?2 > 0 THEN ?3 + ?2 ELSE next_at END WHERE n = ?1",
                  {Value::of(row.n), Value::of(outcome.after.count()), Value::of(wall_ms())}));
    return Ok{};
  }
  if (outcome.kind == OutcomeKind::kDead) HAPAX_CHECK(bury(row, outcome));
  HAPAX_CHECK(file_.ask("DELETE FROM {prefix}outbox_retry WHERE n = ?1", {Value::of(row.n)}));
  HAPAX_CHECK(
      file_.ask("UPDATE {prefix}outbox_retry SET next_at = ?2 WHERE next_at IS NULL AND n = "
                "(SELECT n FROM {prefix}outbox_retry WHERE key = ?1 ORDER BY n LIMIT 1)",
                {Value::text_or_null(row.key), Value::of(wall_ms())}));
  return Ok{};
}

Status OutboxSource::bury(const Taken& row, const SendOutcome& outcome) {
  HAPAX_CHECK(
      file_.ask("INSERT OR IGNORE INTO {prefix}outbox_dead (seq, id, type, key, payload, headers, "
                "correlation_id, causation_id, created_at, attempts, reason) "
                "SELECT seq, id, type, key, payload, headers, correlation_id, causation_id, "
                "created_at, ?2, ?3 FROM {prefix}outbox WHERE seq = ?1",
                {Value::of(row.seq), Value::of(std::int64_t{row.attempt}),
                 Value::text(relay::stored_reason(outcome.reason))}));
  return Ok{};
}

Value OutboxSource::stored(TakenAs as) { return Value::of(static_cast<std::int64_t>(as)); }

Status OutboxSource::take(const relay::LaneTurn& turn, relay::TakenBatches& told) {
  enum Column { kPos, kAttempts, kColumns };
  HAPAX_TRY(const auto rows, file_.ask("SELECT pos, attempts FROM {prefix}outbox_lane", {}));
  const Standing lane{rows.at(0)[kPos].number,
                      static_cast<std::uint32_t>(rows.at(0)[kAttempts].number)};
  HAPAX_TRY(const std::optional<Suspect> suspect, find_suspect());
  if ((suspect || relay::is_suspect(lane.unsettled)) && !turn.alone) {
    told.suspects.push_back({turn.lease.lane, suspect ? suspect->attempts : lane.unsettled});
    return Ok{};
  }
  relay::OutgoingBatch batch{.lane = turn.lease.lane, .records = {}};
  if (suspect) {
    HAPAX_CHECK(take_retry(suspect->n, TakenAs::kAlone, batch));
  } else {
    if (!turn.alone) HAPAX_CHECK(take_retries(turn.take, batch));
    HAPAX_CHECK(take_new(turn.alone ? 1 : turn.take, lane, batch));
  }
  if (!batch.records.empty()) {
    told.batches.push_back(std::move(batch));
  } else if (turn.alone) {  // Somebody deleted it.
    HAPAX_CHECK(file_.ask("UPDATE {prefix}outbox_lane SET attempts = 0", {}));
  }
  return Ok{};
}

Status OutboxSource::take_new(std::uint32_t most, const Standing& standing,
                              relay::OutgoingBatch& batch) {
  const std::uint32_t count = relay::piece_to_take(most, standing.unsettled);
  HAPAX_TRY(
      const auto rows,
      file_.ask(
          "SELECT o.seq, o.key, " + std::string(kContentColumns) +
              ", 0 AS gone, 0 AS attempts, "
              "EXISTS (SELECT 1 FROM {prefix}outbox_retry AS r WHERE r.key = o.key) "
              "AS blocked, NULL AS tried FROM {prefix}outbox AS o WHERE o.seq > ?1 AND o.seq <= "
              "(SELECT max(s.seq) FROM (SELECT l.seq, sum(l.size) OVER (ORDER BY l.seq) "
              "- l.size AS before FROM (SELECT p.seq, length(p.payload) AS size "
              "FROM {prefix}outbox AS p WHERE p.seq > ?1 ORDER BY p.seq LIMIT ?2) AS l) AS s "
              "WHERE s.before < ?3) ORDER BY o.seq",
          {Value::of(standing.pos), Value::of(count), Value::of(kTakenBytes)}));
  for (const Row& row : rows) add(row, 0, relay::attempt_of(standing.unsettled), batch);
  if (!rows.empty())
    HAPAX_CHECK(file_.ask("UPDATE {prefix}outbox_lane SET attempts = attempts + 1", {}));
  return Ok{};
}

Result<std::optional<OutboxSource::Suspect>> OutboxSource::find_suspect() {
  enum Column { kN, kAttempts, kColumns };
  HAPAX_TRY(const auto rows, file_.ask("SELECT n, attempts FROM {prefix}outbox_retry "
                                       "WHERE next_at <= ?1 AND taken <> ?2 "
                                       "ORDER BY attempts, next_at, n LIMIT 1",
                                       {Value::of(wall_ms()), stored(TakenAs::kNot)}));
  if (rows.empty()) return std::optional<Suspect>{};
  return std::optional{
      Suspect{rows.front()[kN], static_cast<std::uint32_t>(rows.front()[kAttempts].number)}};
}

Status OutboxSource::take_retries(std::uint32_t most, relay::OutgoingBatch& batch) {
  enum Column { kN, kAttempts, kBytes, kKey, kColumns };
  HAPAX_TRY(
      const auto rows,
      file_.ask("SELECT q.n, q.attempts, coalesce(length(p.payload), 0) AS bytes, q.key "
                "FROM {prefix}outbox_retry AS q LEFT JOIN {prefix}outbox AS p ON p.seq = q.seq "
                "WHERE q.next_at <= ?1 ORDER BY q.next_at, q.n LIMIT ?2",
                {Value::of(wall_ms()), Value::of(kRetriesAtOnce)}));
  std::int64_t bytes = 0;
  std::vector<Queue> queues;
  for (const Row& row : rows) {
    if (bytes >= kTakenBytes) break;
    bytes += row[kBytes].number;
    HAPAX_CHECK(take_retry(row[kN], TakenAs::kAmongOthers, batch));
    const bool was_held = row[kAttempts].number == 0 && !row[kKey].is_null();
    if (was_held) queues.push_back({row[kKey], row[kN]});
  }
  const std::size_t taken = batch.records.size();
  const auto left = static_cast<std::int64_t>(most > taken ? most - taken : 0);
  return take_behind(std::move(queues), left, bytes, batch);
}

// What was only held behind a record that is settled now is sent as the new rows are, many at once.
// Otherwise a key that gets more than one record per round would never catch up.
Status OutboxSource::take_behind(std::vector<Queue> queues, std::int64_t left, std::int64_t bytes,
                                 relay::OutgoingBatch& batch) {
  while (left > 0 && !queues.empty()) {
    const auto share = std::max<std::int64_t>(left / static_cast<std::int64_t>(queues.size()), 1);
    std::vector<Queue> longer;
    for (Queue& queue : queues) {
      const std::int64_t wanted = std::min(share, left);
      enum Column { kN, kAttempts, kTaken, kBytes, kColumns };
      HAPAX_TRY(
          const auto rows,
          file_.ask("SELECT q.n, q.attempts, q.taken, coalesce(length(p.payload), 0) AS bytes "
                    "FROM {prefix}outbox_retry AS q LEFT JOIN {prefix}outbox AS p ON p.seq = q.seq "
                    "WHERE q.key = ?1 AND q.n > ?2 ORDER BY q.n LIMIT ?3",
                    {queue.key, queue.last, Value::of(wanted)}));
      std::int64_t taken = 0;
      for (const Row& row : rows) {
        const bool was_held = row[kAttempts].number == 0 && row[kTaken].number == 0;
        if (!was_held) break;
        if (bytes >= kTakenBytes) return Ok{};
        bytes += row[kBytes].number;
        HAPAX_CHECK(take_retry(row[kN], TakenAs::kAmongOthers, batch));
        queue.last = row[kN];
        ++taken;
      }
      left -= taken;
      if (taken == wanted) longer.push_back(std::move(queue));
    }
    queues = std::move(longer);
  }
  return Ok{};
}

// Y5: what it was taken for among others, and somebody died over, was no attempt of its own.
Status OutboxSource::take_retry(const Value& n, TakenAs as, relay::OutgoingBatch& batch) {
  HAPAX_TRY(const auto rows,
            file_.ask("SELECT r.seq, r.key, " + std::string(kContentColumns) +
                          ", o.seq IS NULL AS gone, r.attempts - (r.taken = ?2) AS attempts, "
                          "0 AS blocked, r.tried_at AS tried FROM {prefix}outbox_retry AS r "
                          "LEFT JOIN {prefix}outbox AS o ON o.seq = r.seq WHERE r.n = ?1",
                      {n, stored(TakenAs::kAmongOthers)}));
  const Row& row = rows.at(0);
  const auto attempts = static_cast<std::uint32_t>(row[RecordColumn::kAttempts].number);
  add(row, n.number, attempts + 1, batch);
  HAPAX_CHECK(
      file_.ask("UPDATE {prefix}outbox_retry SET taken = ?2, attempts = ?3, "
                "tried_at = CASE WHEN ?3 = 1 THEN ?4 ELSE tried_at END WHERE n = ?1",
                {n, stored(as), Value::of(std::int64_t{attempts} + 1), Value::of(wall_ms())}));
  return Ok{};
}

void OutboxSource::add(const Row& row, std::int64_t n, std::uint32_t attempt,
                       relay::OutgoingBatch& batch) {
  using enum RecordColumn;
  taken_.push_back({n, row[kSeq].number, row[kKey].bytes, attempt});
  auto headers = relay::headers_of(row[kHeaders].bytes);
  const std::string_view flaw = headers ? "" : relay::kBadHeaders;
  const bool again = attempt > 1 && !row[kTried].is_null();
  const Duration tried_for{again ? std::max<std::int64_t>(wall_ms() - row[kTried].number, 0) : 0};
  batch.records.push_back({.place = row[kSeq].number,
                           .id = row[kId].bytes,
                           .type = row[kType].bytes,
                           .key = row[kKey].bytes,
                           .payload = row[kPayload].bytes,
                           .headers = headers ? *std::move(headers) : relay::Headers{},
                           .correlation_id = row[kCorrelationId].bytes,
                           .causation_id = row[kCausationId].bytes,
                           .time = time_from_ms(row[kCreated].number),
                           .attempt = attempt,
                           .tried_for = tried_for,
                           .blocked = row[kBlocked].number != 0,
                           .flaw = std::string(row[kGone].number != 0 ? relay::kRowGone : flaw)});
}

Status OutboxSource::release(std::span<const relay::Lease> leases) {
  for (const relay::Lease& lease : leases) {
    taken_.clear();
    HAPAX_CHECK(
        file_.ask("UPDATE {prefix}outbox_lane SET lease_until = 0 WHERE fence = ?1 AND owner = ?2",
                  {Value::of(lease.fence), Value::text(options_.owner)}));
  }
  return Ok{};
}

// The oldest rows, few at a time: a long deletion would keep writers waiting.
Result<bool> OutboxSource::clean() {
  constexpr std::string_view kOver =
      "SELECT seq FROM (SELECT seq, created_at FROM {prefix}outbox ORDER BY seq LIMIT 500) AS o "
      "WHERE created_at < ?1 AND seq <= (SELECT pos FROM {prefix}outbox_lane) "
      "AND NOT EXISTS (SELECT 1 FROM {prefix}outbox_retry AS r WHERE r.seq = o.seq)";
  const Value before = Value::of(wall_ms() - options_.retention.count());
  HAPAX_TRY(const auto over, file_.ask(std::string(kOver) + " LIMIT 1", {before}));
  if (!over.empty()) {
    HAPAX_CHECK(file_.ask("DELETE FROM {prefix}outbox WHERE seq IN (" + std::string(kOver) + ")",
                          {before}));
  }
  HAPAX_TRY(const bool more, forget_expired());
  return more || !over.empty();
}

// What is over in the inbox and among claims goes, too: whoever uses them may never think of it.
// Looks first, because a DELETE that finds nothing waits for the other writers all the same.
Result<bool> OutboxSource::forget_expired() {
  constexpr std::pair<std::string_view, std::string_view> kTables[] = {
      {"inbox", "subscriber, message_id"}, {"claims", "scope, key"}};
  bool more = false;
  for (const auto& [table, key] : kTables) {
    const std::string over = "SELECT " + std::string(key) + " FROM {prefix}" + std::string(table) +
                             " WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ";
    const Value now = Value::of(wall_ms());
    HAPAX_TRY(const auto first, file_.ask(over + "1", {now}));
    if (first.empty()) continue;
    HAPAX_CHECK(file_.ask("DELETE FROM {prefix}" + std::string(table) + " WHERE (" +
                              std::string(key) + ") IN (" + over + "500)",
                          {now}));
    more = true;
  }
  return more;
}

Result<std::string> OutboxSource::uid() {
  HAPAX_TRY(const auto rows, file_.ask("SELECT uid FROM {prefix}outbox_uid", {}));
  if (rows.size() == 1) return rows.front()[kOnly].bytes;
  return Error{Errc::kPreconditionFailed, "the outbox has no uid: its row was deleted"};
}

Result<relay::OutboxReport> OutboxSource::report() { return report_outbox(file_); }

Result<std::vector<relay::TracedEvent>> OutboxSource::trace(const std::string& id) {
  return trace_event(file_, id);
}

Result<std::vector<relay::DeadLetter>> OutboxSource::dead_letters(std::uint32_t most) {
  return list_dead_letters(file_, most);
}

Result<relay::Redriven> OutboxSource::redrive(std::span<const std::string> ids) {
  return redrive_dead_letters(file_, ids);
}

}  // namespace hapax::sqlite
