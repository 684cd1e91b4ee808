// The tables of an application's database in an SQLite file. What takes several statements runs in
// a transaction that begins as a writer (BEGIN IMMEDIATE): one that begins as a reader cannot wait.
#include "tables/tables.h"

#include <functional>
#include <utility>

#include <hapax/sqlite.h>

#include "sqlite/connection.h"
#include "sqlite/migrate.h"

namespace hapax::sqlite {

namespace {

using tables::ClaimKey;
using tables::ClaimWish;
using tables::MessageRow;
using tables::Resolving;
using tables::Retained;
using tables::Settling;
using tables::Taken;
using tables::text_of;

// The clock of the database; all processes that open one file share a machine.
constexpr const char* kNow = "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)";

Value text(std::string_view bytes) { return Value::text(bytes); }
Value blob(std::string_view bytes) { return Value::blob(bytes); }
Value number(Fence fence) { return Value::of(static_cast<std::int64_t>(fence.value)); }
Value milliseconds(Window window) {
  return window.is_forever() ? Value::null() : Value::of(std::int64_t{window.raw()} * 1000);
}

Time time_in(const Value& value) {
  return value.is_null() ? Time::max() : time_from_ms(value.number);
}

Fence fence_in(const Value& value) { return Fence{static_cast<std::uint64_t>(value.number)}; }

// As the columns of the table of claims.
struct ClaimRow {
  std::string state;
  std::string owner;
  Fence fence;
  std::uint32_t attempts = 0;
  Time lease_until{};
  std::string fingerprint;
  std::string outcome;
  Time first_seen{};
  Time settled_at{};
  Time expires_at{};
  std::string reason;
  std::string on_lapse;
  bool lapsed = false;
};

enum class HeldColumn {
  kState,
  kOwner,
  kFence,
  kAttempts,
  kLeaseUntil,
  kFingerprint,
  kOutcome,
  kFirstSeen,
  kSettledAt,
  kExpiresAt,
  kReason,
  kOnLapse,
  kLapsed,
  kColumns
};
constexpr const char* kHeldColumns =
    "state, owner, fence, attempts, lease_until, fingerprint, outcome, first_seen, settled_at, "
    "expires_at, reason, on_lapse, lapsed";

ClaimRow held_in(const Row& row) {
  using enum HeldColumn;
  return {.state = row[kState].bytes,
          .owner = row[kOwner].bytes,
          .fence = fence_in(row[kFence]),
          .attempts = static_cast<std::uint32_t>(row[kAttempts].number),
          .lease_until = time_in(row[kLeaseUntil]),
          .fingerprint = row[kFingerprint].bytes,
          .outcome = row[kOutcome].bytes,
          .first_seen = time_in(row[kFirstSeen]),
          .settled_at = time_in(row[kSettledAt]),
          .expires_at = time_in(row[kExpiresAt]),
          .reason = row[kReason].bytes,
          .on_lapse = row[kOnLapse].bytes,
          .lapsed = row[kLapsed].number != 0};
}

// Whether the outcome of a claim whose lease ran out is unknown.
bool lapses_unknown(const ClaimRow& held, OnLapse wish) {
  return wish == OnLapse::kUnknown || held.on_lapse == "unknown";
}

class SqliteTables final : public tables::Tables {
 public:
  SqliteTables(sqlite3* connection, const SqliteOptions& options)
      : connection_(Connection::borrow(connection)), prefix_(options.prefix) {
    connection_.set_patience(options.patience);
  }

  Status check() { return check_version(connection_, prefix_, tables::kNeeds); }

  [[nodiscard]] bool in_transaction() const override { return connection_.in_transaction(); }
  Status begin() override { return run("BEGIN IMMEDIATE"); }
  Status commit() override {
    if (!in_transaction()) {
      return Error{Errc::kPreconditionFailed, "the work has ended the transaction it ran in"};
    }
    Status done = run("COMMIT");
    if (!done && in_transaction()) ignore(run("ROLLBACK"), "the COMMIT has failed already");
    return done;
  }
  Status run(const std::string& sql) override { return connection_.run(sql); }

  Status publish(std::span<const Event> events) override;
  Result<Taken> take(const MessageRow& message, Window retention) override;
  Result<std::optional<Taken>> find(const MessageRow& message) override;
  Status keep_outcome(const MessageRow& message, std::string_view outcome) override;
  Result<std::vector<Taking>> accept(std::span<const MessageRow> messages,
                                     Window retention) override;
  Result<Verdict> claim(ClaimKey key, const ClaimWish& wish) override;
  Result<Verdict> renew(ClaimKey key, Fence fence, Duration lease) override;
  Result<Verdict> settle(ClaimKey key, Fence fence, const Settling& settling) override;
  Result<Verdict> drop(ClaimKey key, Fence fence) override;
  Status resolve(ClaimKey key, const Resolving& resolving) override;
  Status forget(ClaimKey key, std::string_view actor, std::string_view reason) override;
  Result<JobStatus> status(ClaimKey key) override;
  Result<std::uint64_t> forget_expired(std::uint32_t most) override;
  Result<std::optional<std::string>> retain(const Retained& which, Window retention,
                                            std::string_view behind, std::uint32_t most) override;

 private:
  // {} in the statement is our prefix, {now} the time in milliseconds.
  Result<std::vector<Row>> ask(const std::string& sql, const std::vector<Value>& values) {
    return connection_.ask(tables::expanded(tables::expanded(sql, "", prefix_), "now", kNow),
                           values);
  }
  Status does(const std::string& sql, const std::vector<Value>& values) {
    HAPAX_CHECK(ask(sql, values));
    return Ok{};
  }
  Result<Time> now() {
    HAPAX_TRY(const std::vector<Row> rows, ask("SELECT {now}", {}));
    return time_in(rows[0][kOnly]);
  }
  Status atomically(const std::function<Status()>& work);
  Status claim_in_transaction(ClaimKey key, const ClaimWish& wish, Verdict& verdict);
  Status take_claim(ClaimKey key, const ClaimWish& wish, std::optional<ClaimRow> former,
                    Time instant, Verdict& verdict);
  Status lapse(ClaimKey key, const ClaimRow& held, Verdict& verdict);
  Status audit(ClaimKey key, std::string_view act, std::string_view actor, std::string_view reason);
  Status resolve_locked(ClaimKey key, const Resolving& resolving);
  Result<std::optional<ClaimRow>> held(ClaimKey key);
  Result<Verdict> fenced(ClaimKey key, Fence fence);

  Connection connection_;
  std::string prefix_;
};

Status SqliteTables::atomically(const std::function<Status()>& work) {
  if (in_transaction()) return work();
  HAPAX_CHECK(begin());
  Status done = work();
  if (done) return commit();
  if (in_transaction()) ignore(run("ROLLBACK"), "the work has failed already");
  return done;
}

// The functions for JSON end a string there.
Status check_headers(const Event& event) {
  for (const auto& [name, value] : event.headers) {
    const bool in_name = name.find('\0') != std::string::npos;
    if (!in_name && value.find('\0') == std::string::npos) continue;
    return Error{Errc::kInvalidArgument,
                 (in_name ? "the name of the header '" : "the value of the header '") +
                     name.substr(0, name.find('\0')) + "' of the event '" +
                     std::string(text_of(event.id)) +
                     "' has a NUL byte, which headers cannot carry on SQLite; nothing was stored"};
  }
  return Ok{};
}

Status SqliteTables::publish(std::span<const Event> events) {
  for (const Event& event : events) HAPAX_CHECK(check_headers(event));
  for (const Event& event : events) {
    HAPAX_CHECK(
        does("INSERT INTO {}outbox (id, type, key, payload, headers, correlation_id, "
             "causation_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
             {text(text_of(event.id)), text(event.type), Value::text_or_null(text_of(event.key)),
              blob(event.payload), Value::text_or_null(tables::headers_json(event)),
              Value::text_or_null(event.correlation_id), Value::text_or_null(event.causation_id)}));
  }
  return Ok{};
}

Result<Taken> SqliteTables::take(const MessageRow& message, Window retention) {
  const Value span = milliseconds(retention);
  HAPAX_TRY(const std::vector<Row> taken,
            ask("INSERT INTO {}inbox (subscriber, message_id, fingerprint, expires_at) "
                "VALUES (?1, ?2, ?3, {now} + ?4) ON CONFLICT DO NOTHING RETURNING received_at",
                {text(message.subscriber), text(message.id), blob(message.fingerprint), span}));
  if (!taken.empty()) {
    return Taken{Taking::kFresh, {}, std::string(message.fingerprint), time_in(taken[0][kOnly])};
  }
  HAPAX_TRY(std::optional<Taken> known, find(message));
  if (known) return *std::move(known);
  return Error{Errc::kLocked,
               "the message " + std::string(message.id) + " was forgotten just now; try again"};
}

Result<std::optional<Taken>> SqliteTables::find(const MessageRow& message) {
  enum Column { kFingerprint, kOutcome, kReceivedAt, kColumns };
  HAPAX_TRY(const std::vector<Row> rows,
            ask("SELECT fingerprint, outcome, received_at FROM {}inbox "
                "WHERE subscriber = ?1 AND message_id = ?2",
                {text(message.subscriber), text(message.id)}));
  if (rows.empty()) return std::optional<Taken>();
  const std::string stored = rows[0][kFingerprint].bytes;
  const bool same = rows[0][kFingerprint].is_null() || stored == message.fingerprint;
  return std::optional(Taken{same ? Taking::kDuplicate : Taking::kConflict, rows[0][kOutcome].bytes,
                             stored, time_in(rows[0][kReceivedAt])});
}

Status SqliteTables::keep_outcome(const MessageRow& message, std::string_view outcome) {
  return does("UPDATE {}inbox SET outcome = ?3 WHERE subscriber = ?1 AND message_id = ?2",
              {text(message.subscriber), text(message.id), blob(outcome)});
}

Result<std::vector<Taking>> SqliteTables::accept(std::span<const MessageRow> messages,
                                                 Window retention) {
  std::vector<Taking> takings;
  HAPAX_CHECK(atomically([&]() -> Status {
    for (const MessageRow& message : messages) {
      HAPAX_TRY(const Taken taken, take(message, retention));
      takings.push_back(taken.taking);
    }
    return Ok{};
  }));
  return takings;
}

Result<std::optional<ClaimRow>> SqliteTables::held(ClaimKey key) {
  HAPAX_TRY(const std::vector<Row> rows, ask(std::string("SELECT ") + kHeldColumns +
                                                 " FROM {}claims WHERE scope = ?1 AND key = ?2",
                                             {text(key.scope), text(key.key)}));
  if (rows.empty()) return std::optional<ClaimRow>();
  return std::optional(held_in(rows[0]));
}

Result<Verdict> SqliteTables::claim(ClaimKey key, const ClaimWish& wish) {
  Verdict verdict = Done{};
  HAPAX_CHECK(atomically([&] { return claim_in_transaction(key, wish, verdict); }));
  return verdict;
}

// The same rules as check_and_lock() of migrations/postgres; one suite holds both to them.
Status SqliteTables::claim_in_transaction(ClaimKey key, const ClaimWish& wish, Verdict& verdict) {
  HAPAX_TRY(const Time instant, now());
  HAPAX_TRY(std::optional<ClaimRow> found, held(key));
  if (found && found->expires_at <= instant) found.reset();
  // What failed did not happen, so its key is free for other content.
  if (!found || found->state == "failed") {
    return take_claim(key, wish, std::move(found), instant, verdict);
  }
  const bool other = !wish.fingerprint.empty() && !found->fingerprint.empty() &&
                     found->fingerprint != wish.fingerprint;
  if (other) {
    verdict = Conflict{tables::to_fingerprint(found->fingerprint),
                       tables::to_fingerprint(wish.fingerprint), found->first_seen};
  } else if (found->state == "completed") {
    verdict = DuplicateClaim{StoredResult{.body = found->outcome}, found->fence, found->settled_at,
                             found->expires_at};
  } else if (found->state == "unknown") {
    verdict = UnknownOutcome{found->owner, found->reason, found->settled_at};
  } else if (found->lease_until > instant) {
    verdict = InProgress{found->owner, found->lease_until, found->attempts};
  } else if (lapses_unknown(*found, wish.on_lapse)) {
    return lapse(key, *found, verdict);
  } else {
    found->lapsed = true;
    return take_claim(key, wish, std::move(found), instant, verdict);
  }
  return Ok{};
}

Status SqliteTables::take_claim(ClaimKey key, const ClaimWish& wish, std::optional<ClaimRow> former,
                                Time instant, Verdict& verdict) {
  HAPAX_TRY(const std::vector<Row> rows,
            ask("UPDATE {}claim_fence SET fence = fence + 1 RETURNING fence", {}));
  const Time lease_until = instant + wish.lease;
  const std::uint32_t attempt = former ? former->attempts + 1 : 1;
  const bool same = former && former->state != "failed" && !former->fingerprint.empty();
  const std::string_view print = same ? std::string_view(former->fingerprint) : wish.fingerprint;
  HAPAX_CHECK(
      does("INSERT OR REPLACE INTO {}claims (scope, key, state, owner, fence, attempts, "
           "lease_until, fingerprint, first_seen, on_lapse, lapsed) "
           "VALUES (?1, ?2, 'processing', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
           {text(key.scope), text(key.key), text(wish.owner), rows[0][kOnly], Value::of(attempt),
            Value::of(to_ms(lease_until)), Value::blob_or_null(print),
            Value::of(to_ms(former ? former->first_seen : instant)),
            text(tables::word_of(wish.on_lapse)), Value::of(former && former->lapsed ? 1 : 0)}));
  verdict = Claimed{fence_in(rows[0][kOnly]), attempt, lease_until,
                    tables::former_of(attempt, former && former->lapsed)};
  return Ok{};
}

Status SqliteTables::lapse(ClaimKey key, const ClaimRow& held, Verdict& verdict) {
  HAPAX_TRY(const std::vector<Row> rows,
            ask("UPDATE {}claims SET state = 'unknown', settled_at = lease_until, reason = "
                "'the lease of owner ''' || owner || ''' ran out at ' || "
                "strftime('%Y-%m-%dT%H:%M:%fZ', lease_until / 1000.0, 'unixepoch') || "
                "' before the owner settled; it may have done the work' "
                "WHERE scope = ?1 AND key = ?2 RETURNING reason",
                {text(key.scope), text(key.key)}));
  verdict = UnknownOutcome{held.owner, rows.at(0)[kOnly].bytes, held.lease_until};
  return Ok{};
}

Result<Verdict> SqliteTables::fenced(ClaimKey key, Fence fence) {
  HAPAX_TRY(const std::optional<ClaimRow> found, held(key));
  return Verdict{Fenced{found ? found->fence.value : 0, fence.value}};
}

Result<Verdict> SqliteTables::renew(ClaimKey key, Fence fence, Duration lease) {
  HAPAX_TRY(const std::vector<Row> rows,
            ask("UPDATE {}claims SET lease_until = {now} + ?4 WHERE scope = ?1 AND key = ?2 "
                "AND fence = ?3 AND state = 'processing' RETURNING lease_until",
                {text(key.scope), text(key.key), number(fence), Value::of(lease.count())}));
  if (rows.empty()) return fenced(key, fence);
  return Verdict{Renewed{time_in(rows[0][kOnly])}};
}

Result<Verdict> SqliteTables::settle(ClaimKey key, Fence fence, const Settling& settling) {
  const Value span = milliseconds(settling.retention);
  HAPAX_TRY(
      const std::vector<Row> rows,
      ask("UPDATE {}claims SET state = ?4, outcome = ?5, reason = ?6, settled_at = {now}, "
          "expires_at = {now} + ?7 WHERE scope = ?1 AND key = ?2 AND fence = ?3 "
          "AND state NOT IN ('completed', ?4) AND (expires_at IS NULL OR expires_at > {now}) "
          "RETURNING 1",
          {text(key.scope), text(key.key), number(fence), text(hapax::word_of(settling.status)),
           blob(settling.outcome), Value::text_or_null(settling.reason), span}));
  if (!rows.empty()) return Verdict{Done{}};
  HAPAX_TRY(const std::optional<ClaimRow> found, held(key));
  const bool repeated =
      found && found->fence == fence && found->state == hapax::word_of(settling.status);
  if (repeated) return Verdict{Done{}};
  return Verdict{Fenced{found ? found->fence.value : 0, fence.value}};
}

Result<Verdict> SqliteTables::drop(ClaimKey key, Fence fence) {
  HAPAX_TRY(const std::vector<Row> rows,
            ask("DELETE FROM {}claims WHERE scope = ?1 AND key = ?2 AND fence = ?3 "
                "AND state = 'processing' RETURNING 1",
                {text(key.scope), text(key.key), number(fence)}));
  if (!rows.empty()) return Verdict{Done{}};
  return fenced(key, fence);
}

Status SqliteTables::audit(ClaimKey key, std::string_view act, std::string_view actor,
                           std::string_view reason) {
  return does(
      "INSERT INTO {}claim_audit (act, scope, key, actor, reason) VALUES (?1, ?2, ?3, ?4, ?5)",
      {text(act), text(key.scope), text(key.key), text(actor), text(reason)});
}

Status SqliteTables::resolve(ClaimKey key, const Resolving& resolving) {
  HAPAX_CHECK(tables::check_signed(key, resolving.actor, resolving.reason));
  return atomically([&] { return resolve_locked(key, resolving); });
}

Status SqliteTables::resolve_locked(ClaimKey key, const Resolving& resolving) {
  HAPAX_TRY(const JobStatus standing, status(key));
  if (standing != JobStatus::kUnknown) {
    return Error{Errc::kPreconditionFailed, "claim '" + std::string(key.scope) + "/" +
                                                std::string(key.key) + "' is " +
                                                std::string(hapax::word_of(standing)) +
                                                "; only an unknown outcome can be resolved"};
  }
  HAPAX_CHECK(audit(key, tables::act_of(resolving.resolution), resolving.actor, resolving.reason));
  if (resolving.resolution == Resolution::kRelease) {
    return does("DELETE FROM {}claims WHERE scope = ?1 AND key = ?2",
                {text(key.scope), text(key.key)});
  }
  const bool completed = resolving.resolution == Resolution::kCompleted;
  const bool forever = resolving.retention.is_forever();
  const Window retention = completed || !forever ? resolving.retention : tables::kFailedRetention;
  return does(
      "UPDATE {}claims SET state = ?3, outcome = ?4, reason = ?5, settled_at = {now}, "
      "expires_at = {now} + ?6 WHERE scope = ?1 AND key = ?2",
      {text(key.scope), text(key.key), text(completed ? "completed" : "failed"),
       completed ? blob(resolving.outcome) : Value::null(), text(resolving.reason),
       milliseconds(retention)});
}

Status SqliteTables::forget(ClaimKey key, std::string_view actor, std::string_view reason) {
  HAPAX_CHECK(tables::check_signed(key, actor, reason));
  return atomically([&]() -> Status {
    HAPAX_TRY(const JobStatus standing, status(key));
    if (standing == JobStatus::kNotSeen) {
      return Error{Errc::kNotFound, "claim '" + std::string(key.scope) + "/" +
                                        std::string(key.key) + "' is not known"};
    }
    HAPAX_CHECK(audit(key, "forget", actor, reason));
    return does("DELETE FROM {}claims WHERE scope = ?1 AND key = ?2",
                {text(key.scope), text(key.key)});
  });
}

Result<JobStatus> SqliteTables::status(ClaimKey key) {
  HAPAX_TRY(const std::vector<Row> rows,
            ask("SELECT CASE WHEN state = 'processing' AND on_lapse = 'unknown' AND lease_until <= "
                "{now} THEN 'unknown' ELSE state END FROM {}claims WHERE scope = ?1 AND key = ?2 "
                "AND (expires_at IS NULL OR expires_at > {now})",
                {text(key.scope), text(key.key)}));
  return rows.empty() ? JobStatus::kNotSeen : tables::status_of(rows[0][kOnly].bytes);
}

Result<std::uint64_t> SqliteTables::forget_expired(std::uint32_t most) {
  std::uint64_t forgotten = 0;
  const std::vector<Value> values = {Value::of(most)};
  const Status done = atomically([&]() -> Status {
    HAPAX_CHECK(
        does("DELETE FROM {}inbox WHERE (subscriber, message_id) IN (SELECT subscriber, "
             "message_id FROM {}inbox WHERE expires_at <= {now} ORDER BY expires_at "
             "LIMIT ?1)",
             values));
    forgotten = connection_.changes();
    HAPAX_CHECK(
        does("DELETE FROM {}claims WHERE (scope, key) IN (SELECT scope, key FROM {}claims "
             "WHERE expires_at <= {now} ORDER BY expires_at LIMIT ?1)",
             values));
    forgotten += connection_.changes();
    return Ok{};
  });
  if (!done) return done.error();
  return forgotten;
}

Result<std::optional<std::string>> SqliteTables::retain(const Retained& which, Window retention,
                                                        std::string_view behind,
                                                        std::uint32_t most) {
  const bool inbox = which.table == Retained::kInbox;
  const Value name = text(which.name);
  std::optional<std::string> last;
  HAPAX_CHECK(atomically([&]() -> Status {
    HAPAX_TRY(const std::vector<Row> rows,
              ask(inbox ? "SELECT max(message_id) FROM (SELECT message_id FROM {}inbox WHERE "
                          "subscriber = ?1 AND message_id > ?2 ORDER BY message_id LIMIT ?3)"
                        : "SELECT max(key) FROM (SELECT key FROM {}claims WHERE scope = ?1 AND "
                          "key > ?2 ORDER BY key LIMIT ?3)",
                  {name, text(behind), Value::of(most)}));
    if (rows.at(0)[kOnly].is_null()) return Ok{};
    last = rows[0][kOnly].bytes;
    return does(inbox ? "UPDATE {}inbox SET expires_at = received_at + ?4 WHERE subscriber = ?1 "
                        "AND message_id > ?2 AND message_id <= ?3 "
                        "AND expires_at IS NOT received_at + ?4"
                      : "UPDATE {}claims SET expires_at = settled_at + ?4 WHERE scope = ?1 "
                        "AND key > ?2 AND key <= ?3 AND state = 'completed' "
                        "AND expires_at IS NOT settled_at + ?4",
                {name, text(behind), text(*last), milliseconds(retention)});
  }));
  return last;
}

}  // namespace

}  // namespace hapax::sqlite

namespace hapax {

Result<std::unique_ptr<Database>> on_sqlite(sqlite3* connection, const SqliteOptions& options) {
  auto tables = std::make_unique<sqlite::SqliteTables>(connection, options);
  HAPAX_CHECK(tables->check());
  return std::make_unique<Database>(std::move(tables));
}

}  // namespace hapax
