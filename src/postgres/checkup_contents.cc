#include <algorithm>

#include "base/format.h"
#include "postgres/checkup.h"
#include "tables/migration.h"

namespace hapax::postgres {

namespace {

using tables::bytes_text;
using tables::severity_of;
using tables::span_text;

// "at least 10000": the question stopped counting there.
std::string bounded(std::int64_t count, std::int64_t bound) {
  return base::format("{}{}", count >= bound ? "at least " : "", count);
}

// No index finds an id, so the newest rows of each lane are looked at.
constexpr std::string_view kNewest =
    "newest AS MATERIALIZED (SELECT o.id, o.seq FROM generate_series(0, 15) AS l(lane), "
    "LATERAL (SELECT s.id, s.seq FROM \"{schema}\".outbox AS s WHERE s.lane = l.lane::integer "
    "ORDER BY s.seq DESC LIMIT 1000) AS o) ";

void check_ids(Look& look) {
  enum Column { kLooked, kWithoutId, kTwice, kExample, kColumns };
  const auto rows = look.ask(
      "ids", "WITH " + std::string(kNewest) +
                 ", twice AS (SELECT id, count(*) AS n FROM newest WHERE id <> '' GROUP BY id "
                 "HAVING count(*) > 1) "
                 "SELECT (SELECT count(*) FROM newest) AS looked, "
                 "(SELECT count(*) FROM newest WHERE id IS NULL OR id = '') AS without_id, "
                 "(SELECT count(*) FROM twice) AS twice, "
                 "(SELECT quote_literal(id) FROM twice ORDER BY n DESC LIMIT 1) AS example");
  if (!rows) return;
  const std::string looked = " of the newest " + rows->text(0, kLooked) + " rows";
  if (rows->number(0, kWithoutId) > 0) {
    look.findings().critical(
        "ids",
        rows->text(0, kWithoutId) + looked +
            " of the outbox have no id: receivers cannot tell "
            "them apart",
        look.named("publish with \"{schema}\".publish(), which makes ids; see who inserted: SELECT "
                   "seq, type, key, created_at FROM \"{schema}\".outbox WHERE id IS NULL OR "
                   "id = '' LIMIT 10;"));
    look.findings().figure("without_id", rows->number(0, kWithoutId));
  }
  if (rows->number(0, kTwice) > 0) {
    look.findings().warn(
        "duplicates",
        rows->text(0, kTwice) + " ids are there more than once" + looked + " of the outbox, as " +
            rows->text(0, kExample) + ": the same event was published by several transactions",
        look.named("SELECT xid, seq, created_at, type, key FROM \"{schema}\".outbox WHERE id = " +
                   rows->text(0, kExample) +
                   " ORDER BY seq; then guard that operation with a claim or the inbox"));
    look.findings().figure("ids", rows->number(0, kTwice));
  }
  if (rows->number(0, kWithoutId) == 0 && rows->number(0, kTwice) == 0) {
    look.findings().ok("ids", "every one" + looked + " of the outbox has an id of its own");
  }
}

// A transaction that is run again publishes its events again, and an id that was made at random
// does not tell. Small payloads only, so that little is read.
void check_equal_events(Look& look) {
  enum Column { kEvents, kExample, kLooked, kColumns };
  const auto rows = look.ask(
      "equal events",
      "WITH newest AS MATERIALIZED (SELECT o.* FROM generate_series(0, 15) AS l(lane), LATERAL "
      "(SELECT s.id, s.type, s.key, s.payload, s.created_at FROM \"{schema}\".outbox AS s "
      "WHERE s.lane = l.lane::integer ORDER BY s.seq DESC LIMIT 1000) AS o), "
      "twice AS (SELECT type, key, payload, count(DISTINCT id) AS n FROM newest "
      "WHERE key IS NOT NULL AND octet_length(payload) BETWEEN 1 AND 2048 "
      "AND id ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$' "
      "GROUP BY type, key, payload HAVING count(DISTINCT id) > 1 "
      "AND max(created_at) - min(created_at) < interval '1 hour') "
      "SELECT count(*) AS events, (SELECT quote_literal(type) || ' of ' || quote_literal(key) FROM "
      "twice "
      "ORDER BY n DESC LIMIT 1) AS example, (SELECT count(*) FROM newest) AS looked FROM twice");
  if (!rows || rows->number(0, kEvents) == 0) return;
  look.findings().warn(
      "equal events",
      rows->text(0, kEvents) + " events of the newest " + rows->text(0, kLooked) +
          " rows are there again within an hour under another random id, as " +
          rows->text(0, kExample) + ": receivers cannot tell a repetition from a new event",
      look.named("if an operation was run again, derive the id from what happened: "
                 "\"{schema}\".publish(..., id => \"{schema}\".uuid_of("
                 "'6ba7b811-9dad-11d1-80b4-00c04fd430c8', 'order.placed/o-1'))"));
  look.findings().figure("events", rows->number(0, kEvents));
}

// From subscriber to subscriber along the primary key, not along the rows.
void check_inbox_ids(Look& look) {
  enum Column { kSubscribers, kExample, kColumns };
  const auto rows = look.ask(
      "inbox ids",
      "WITH RECURSIVE s AS ((SELECT subscriber FROM \"{schema}\".inbox ORDER BY 1 LIMIT 1) "
      "UNION ALL SELECT (SELECT i.subscriber FROM \"{schema}\".inbox AS i "
      "WHERE i.subscriber > s.subscriber ORDER BY 1 LIMIT 1) FROM s "
      "WHERE s.subscriber IS NOT NULL) "
      "SELECT count(*) AS subscribers, quote_literal(min(subscriber)) AS example FROM (SELECT * "
      "FROM s LIMIT 1000) AS few "
      "WHERE subscriber = '' OR EXISTS (SELECT 1 FROM \"{schema}\".inbox AS i "
      "WHERE i.subscriber = few.subscriber AND i.message_id = '')");
  if (!rows || rows->number(0, kSubscribers) == 0) return;
  look.findings().critical(
      "inbox ids",
      "the subscriber " + rows->text(0, kExample) +
          " has taken a message without an id: every other one like it is taken for "
          "its duplicate",
      look.named("set ids where messages are sent, then: DELETE FROM \"{schema}\".inbox WHERE "
                 "subscriber = " +
                 rows->text(0, kExample) + " AND message_id = '';"));
}

// O1: a session that takes numbers in advance publishes behind where lanes stand.
bool check_numbers_step(Look& look) {
  enum Column { kCache, kIncrement, kColumns };
  const auto rows = look.ask(
      "numbers",
      "SELECT seqcache AS cache, seqincrement AS increment FROM pg_sequence WHERE seqrelid = "
      "'\"{schema}\".outbox_seq'::regclass");
  if (!rows || rows->size() == 0) return false;
  if (rows->number(0, kCache) == 1 && rows->number(0, kIncrement) == 1) return true;
  look.findings().critical(
      "numbers",
      "outbox_seq has CACHE " + rows->text(0, kCache) + " and INCREMENT " +
          rows->text(0, kIncrement) + ": events would be skipped, and relays refuse to run",
      look.named("ALTER SEQUENCE \"{schema}\".outbox_seq INCREMENT BY 1 CACHE 1; then let whoever "
                 "publishes connect anew, because sessions keep the numbers they took"));
  return false;
}

// Y10: a sequence that went back.
void check_numbers(Look& look) {
  if (!check_numbers_step(look)) return;
  enum Column { kGiven, kSent, kColumns };
  const auto rows =
      look.ask("numbers", "SELECT given, sent FROM \"{schema}\".outbox_numbers() AS n");
  if (!rows) return;
  const std::string found = "outbox_seq is at " + rows->text(0, kGiven) + ", events up to number " +
                            rows->text(0, kSent) + " were sent";
  if (rows->number(0, kGiven) >= rows->number(0, kSent))
    return look.findings().ok("numbers", found);
  look.findings().critical(
      "numbers",
      found +
          ": the sequence went back, as in a restore without sequences; what is published "
          "now would be skipped, and relays refuse to run",
      look.named("SELECT \"{schema}\".outbox_renumber('TIME'); with the time of the restore or an "
                 "earlier one: events since then are sent, again under the same ids if they were"));
}

// Per lane: where it stands, and what waits behind. Counting ends at 1,000. Rows of progress are
// added by pauses too, so what counts is since when it stands where it stands; and before the
// oldest record came there was nothing to do. What is due for another attempt, and that for longer
// than the patience, waits too: a relay would have made it.
enum class LaneColumn {
  kStuck,
  kStuckOwners,
  kStuckAttempts,
  kStuckOldest,
  kStuckStill,
  kAlone,
  kAloneOldest,
  kWaiting,
  kOldest,
  kHeld,
  kMore,
  kColumns
};
constexpr std::string_view kLaneSql =
    "SELECT count(*) FILTER (WHERE stuck) AS stuck, "
    "string_agg(DISTINCT owner, ', ') FILTER (WHERE stuck) AS stuck_owners, "
    "max(attempts) FILTER (WHERE stuck) AS stuck_attempts, "
    "max(oldest) FILTER (WHERE stuck) AS stuck_oldest, "
    "max(least(still, oldest)) FILTER (WHERE stuck) AS stuck_still, "
    "count(*) FILTER (WHERE NOT held AND oldest > {patience}) AS alone, "
    "max(oldest) FILTER (WHERE NOT held) AS alone_oldest, "
    "coalesce(sum(waiting), 0) AS waiting, coalesce(max(oldest), 0) AS oldest, "
    "count(*) FILTER (WHERE held) AS held, count(*) FILTER (WHERE more) AS more FROM ("
    "SELECT *, held AND oldest > {patience} AND (attempts >= 2 OR still > {patience}) AS stuck "
    "FROM ("
    "SELECT l.owner, l.lease_until > clock_timestamp() AS held, coalesce(p.attempts, 0) AS "
    "attempts, "
    "floor(extract(epoch FROM clock_timestamp() - coalesce(p.moved_at, u.oldest, d.since)) "
    "* 1000)::bigint AS still, u.waiting + d.count AS waiting, u.more OR d.count = 1000 AS more, "
    "floor(extract(epoch FROM clock_timestamp() - least(u.oldest, d.since)) * 1000)::bigint "
    "AS oldest FROM \"{schema}\".outbox_lane AS l "
    "LEFT JOIN LATERAL (SELECT * FROM \"{schema}\".outbox_progress AS q WHERE q.lane = l.lane "
    " ORDER BY q.fence DESC, q.n DESC LIMIT 1) AS p ON true "
    "CROSS JOIN LATERAL \"{schema}\".relay_unsent(l.lane, 1000) AS u "
    "CROSS JOIN LATERAL (SELECT count(*), min(r.next_at) AS since FROM (SELECT q.next_at FROM "
    "\"{schema}\".outbox_retry AS q WHERE q.lane = l.lane AND q.next_at < clock_timestamp() "
    "- {patience} * interval '1 millisecond' ORDER BY q.next_at LIMIT 1000) AS r) AS d"
    ") AS lanes) AS judged";

// A lease that is held while its oldest record is old, and nothing was sent for as long or the
// same records were taken again and again, is renewed without progress.
void report_stuck(const CheckupOptions& options, const Rows& rows, Findings& findings) {
  using enum LaneColumn;
  const std::int64_t stuck = rows.number(0, kStuck);
  const std::int64_t attempts = rows.number(0, kStuckAttempts);
  findings.critical(
      "stuck lanes",
      base::format(
          "{} of 16 lanes are held by {} and do not move: the oldest record waits for {}{}", stuck,
          rows.text(0, kStuckOwners), span_text(rows.number(0, kStuckOldest)),
          attempts >= 2 ? base::format(", taken {} times without an end", attempts)
                        : ", and nothing was sent for " + span_text(rows.number(0, kStuckStill))),
      "see that relay's log and whether its destination answers; if it does, restart the relay, "
      "and others take over after its lease (hapax relay --status --from '" +
          options.shown + "')");
  findings.figure("lanes", stuck);
  findings.figure("oldest_ms", rows.number(0, kStuckOldest));
}

void check_lanes(const CheckupOptions& options, Look& look) {
  const auto rows = look.ask(
      "lanes", tables::expanded(kLaneSql, "patience", std::to_string(options.patience_ms)));
  if (!rows) return;
  Findings& findings = look.findings();
  using enum LaneColumn;
  if (rows->number(0, kStuck) > 0) report_stuck(options, *rows, findings);
  if (const std::int64_t alone = rows->number(0, kAlone); alone > 0) {
    const std::int64_t oldest = rows->number(0, kAloneOldest);
    findings.add(
        {"no relay",
         severity_of(oldest, options.patience_ms),
         base::format("{} lanes have records that wait, the oldest for {}, and no relay holds them",
                      alone, span_text(oldest)),
         "hapax relay --from '" + options.shown + "' --to http://HOST:7171/streams/NAME",
         {{"lanes", alone}, {"oldest_ms", oldest}}});
  }
  const std::int64_t oldest = rows->number(0, kOldest);
  const bool told = rows->number(0, kStuck) > 0 || rows->number(0, kAlone) > 0;
  Finding finding{"waiting", told ? Severity::kOk : severity_of(oldest, options.patience_ms),
                  (rows->number(0, kMore) > 0 ? "at least " : "") + rows->text(0, kWaiting) +
                      " records, the oldest for " + span_text(oldest) + "; " +
                      rows->text(0, kHeld) + " of 16 lanes are held",
                  ""};
  if (finding.severity != Severity::kOk) {
    finding.remedy =
        "relays hold these lanes and are behind: if their logs tell of no trouble with the "
        "destination, start another one with the same command";
  }
  finding.figures = {{"waiting", rows->number(0, kWaiting)}, {"oldest_ms", oldest}};
  findings.add(std::move(finding));
}

void check_retries(Look& look) {
  enum Column { kRecords, kKeys, kAttempts, kExample, kColumns };
  const auto rows =
      look.ask("retries",
               "SELECT count(*) AS records, count(DISTINCT key) AS keys, "
               "coalesce(max(attempts), 0) AS attempts, "
               "left((array_agg(last_error ORDER BY attempts DESC))[1], 200) AS example "
               "FROM (SELECT * FROM \"{schema}\".outbox_retry ORDER BY n LIMIT 10000) AS few");
  if (!rows) return;
  const std::int64_t count = rows->number(0, kRecords);
  Finding finding{"retries",
                  Severity::kOk,
                  bounded(count, 10'000) +
                      " records wait for another "
                      "attempt",
                  "",
                  {{"count", count}, {"attempts", rows->number(0, kAttempts)}}};
  if (rows->number(0, kAttempts) >= 3 || count >= 1'000) {
    finding.severity = Severity::kWarning;
    finding.found += ", of " + rows->text(0, kKeys) + " keys, with up to " +
                     rows->text(0, kAttempts) + " attempts; as: " + rows->text(0, kExample);
    finding.remedy = look.named(
        "correct what the destination says; SELECT lane, seq, key, attempts, next_at, last_error "
        "FROM \"{schema}\".outbox_retry WHERE attempts > 0 ORDER BY attempts DESC LIMIT 20;");
  }
  look.findings().add(std::move(finding));
}

void check_dead_letters(Look& look) {
  enum Column { kRecords, kReason, kSeq, kColumns };
  const auto rows = look.ask(
      "dead letters",
      "SELECT count(*) AS records, (SELECT left(reason, 200) FROM \"{schema}\".outbox_dead "
      "ORDER BY seq DESC LIMIT 1) AS reason, (SELECT seq FROM \"{schema}\".outbox_dead ORDER BY "
      "seq DESC "
      "LIMIT 1) AS seq FROM (SELECT 1 FROM \"{schema}\".outbox_dead LIMIT 10000) AS few");
  if (!rows) return;
  const std::int64_t count = rows->number(0, kRecords);
  if (count == 0) return look.findings().ok("dead letters", "none");
  const std::string seq = rows->text(0, kSeq);
  look.findings().warn(
      "dead letters",
      bounded(count, 10'000) +
          " records were given up, the latest because: " + rows->text(0, kReason),
      look.named(
          "correct the cause, then send again: SELECT \"{schema}\".publish(type, payload, key, "
          "id, headers, correlation_id, causation_id) FROM \"{schema}\".outbox_dead WHERE seq = " +
          seq + "; DELETE FROM \"{schema}\".outbox_dead WHERE seq = " + seq + ";"));
  look.findings().figure("count", count);
}

// Statistics of the server: estimates, free of charge.
void check_size(Look& look) {
  enum Column { kName, kRecords, kBytes, kColumns };
  const auto rows = look.ask(
      "size",
      "SELECT CASE WHEN c.relispartition THEN 'outbox' ELSE c.relname END AS name, "
      "sum(greatest(c.reltuples, 0))::bigint AS records, "
      "sum(pg_total_relation_size(c.oid))::bigint AS bytes "
      "FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
      "WHERE n.nspname = '{schema}' AND c.relkind = 'r' AND (c.relispartition OR c.relname IN "
      "('inbox', 'claims', 'outbox_dead', 'outbox_progress')) GROUP BY 1 ORDER BY 3 DESC");
  if (!rows) return;
  Finding finding{"size", Severity::kOk, "", ""};
  for (std::size_t row = 0; row < rows->size(); ++row) {
    const std::string table = rows->text(row, kName);
    finding.found += (row == 0 ? "" : "; ") + table + " about " + rows->text(row, kRecords) +
                     " rows, " + bytes_text(rows->number(row, kBytes));
    finding.figures.emplace_back(table + "_bytes", rows->number(row, kBytes));
  }
  finding.found += " (rows are estimates)";
  look.findings().add(std::move(finding));
}

// A relay empties one partition a minute; five are time enough.
void check_retention(Look& look) {
  enum Column { kOld, kEmptiable, kRetention, kSince, kColumns };
  const auto rows = look.ask(
      "retention",
      "SELECT count(*) AS old, count(*) FILTER (WHERE part <> \"{schema}\".outbox_part() "
      "AND \"{schema}\".relay_is_old(part)) AS emptiable, "
      "\"{schema}\".outbox_retention()::text AS retention, coalesce(to_char(min(newest), "
      "'YYYY-MM-DD'), '') AS since "
      "FROM (SELECT p.part, (SELECT max(n.created_at) FROM generate_series(0, 15) AS l(lane), "
      "LATERAL (SELECT o.created_at FROM \"{schema}\".outbox AS o WHERE o.part = p.part::integer "
      "AND o.lane = l.lane::integer ORDER BY o.seq DESC LIMIT 1) AS n) AS newest "
      "FROM generate_series(0, 31) AS p(part)) AS parts WHERE newest < clock_timestamp() "
      "- \"{schema}\".outbox_retention() - interval '5 minutes'");
  if (!rows) return;
  const std::int64_t old = rows->number(0, kOld);
  if (old == 0) {
    return look.findings().ok("retention",
                              "no partition is older than " + rows->text(0, kRetention));
  }
  const bool sent = rows->number(0, kEmptiable) > 0;
  look.findings().warn(
      "retention",
      base::format("{} partitions are older than the retention ({}; since {}) and not emptied, {} "
                   "of them could be; the others are in use or have records that were not sent",
                   old, rows->text(0, kRetention), rows->text(0, kSince),
                   rows->text(0, kEmptiable)),
      sent ? look.named("run a relay, which empties one a minute, or now: SELECT "
                        "\"{schema}\".relay_clean(); until it says 0")
           : "run a relay until nothing waits");
  look.findings().figure("partitions", old);
}

void check_expired(const CheckupOptions& options, Look& look) {
  enum Column { kInbox, kClaims, kColumns };
  const auto rows = look.ask(
      "expired",
      "SELECT (SELECT count(*) FROM (SELECT 1 FROM \"{schema}\".inbox WHERE expires_at < now() "
      "- interval '1 hour' LIMIT 10000) AS i) AS inbox, (SELECT count(*) FROM (SELECT 1 FROM "
      "\"{schema}\".claims WHERE expires_at < now() - interval '1 hour' LIMIT 10000) AS c) AS "
      "claims");
  if (!rows) return;
  const std::int64_t inbox = rows->number(0, kInbox);
  const std::int64_t claims = rows->number(0, kClaims);
  const std::string found = bounded(inbox, 10'000) + " rows of the inbox and " +
                            bounded(claims, 10'000) +
                            " claims are past their retention for an hour";
  if (inbox + claims == 0) return look.findings().ok("expired", found);
  look.findings().warn(
      "expired", found,
      look.named("run a relay, which forgets them, or: hapax clean '" + options.shown + "'"));
  look.findings().figure("inbox", inbox);
  look.findings().figure("claims", claims);
}

// Reads all claims.
void check_fences(Look& look) {
  enum Column { kGiven, kHeld, kColumns };
  const auto rows = look.ask("fences",
                             "SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END AS given, "
                             "coalesce(max(c.fence), 0) AS held FROM \"{schema}\".claim_fence AS s "
                             "LEFT JOIN \"{schema}\".claims AS c ON true GROUP BY 1");
  if (!rows || rows->number(0, kGiven) >= rows->number(0, kHeld)) return;
  look.findings().critical(
      "fences",
      "claim_fence is at " + rows->text(0, kGiven) + ", but a claim has the fence " +
          rows->text(0, kHeld) +
          ": the sequence went back, as in a restore without sequences, and "
          "a worker that lost its claim is not told from the one that has it now",
      look.named("SELECT setval('\"{schema}\".claim_fence', (SELECT max(fence) FROM "
                 "\"{schema}\".claims));"));
}

// Nobody does their work before somebody decides.
void check_unknown(Look& look) {
  enum Column { kClaims, kExample, kReason, kColumns };
  const auto rows = look.ask(
      "unknown outcomes",
      "SELECT count(*) AS claims, (array_agg(quote_literal(scope) || ', ' || quote_literal(key) "
      "ORDER BY lease_until))[1] AS example, "
      "(array_agg(coalesce(reason, '') ORDER BY lease_until))[1] AS reason "
      "FROM \"{schema}\".claims WHERE state = 'unknown' OR (state = 'processing' "
      "AND on_lapse = 'unknown' AND lease_until <= clock_timestamp())");
  if (!rows || rows->number(0, kClaims) == 0) return;
  look.findings().warn(
      "unknown outcomes",
      rows->text(0, kClaims) + " claims may have been done or not, as " + rows->text(0, kExample) +
          (rows->at(0, kReason).empty() ? "" : ": " + rows->text(0, kReason)),
      look.named("find out, then: SELECT \"{schema}\".resolve(" + rows->text(0, kExample) +
                 ", 'completed' or 'not_applied', 'YOUR NAME', 'how you know');"));
  look.findings().figure("count", rows->number(0, kClaims));
}

// No index finds running claims; a table that is small enough is read.
constexpr std::int64_t kClaimsBytesMax = std::int64_t{64} << 20;

void check_claims(const CheckupOptions& options, Look& look) {
  const auto size = look.ask("claims", "SELECT pg_relation_size('\"{schema}\".claims')");
  if (!size) return;
  if (size->number(0, kOnly) >= kClaimsBytesMax) {
    look.findings().ok(
        "claims", look.named("not looked at: the table has " + bytes_text(size->number(0, kOnly)) +
                             ", and all of it would have to be read: SELECT scope, key, owner, "
                             "lease_until FROM \"{schema}\".claims WHERE state = 'processing' "
                             "ORDER BY first_seen LIMIT 20;"));
    return look.findings().figure("bytes", size->number(0, kOnly));
  }
  check_fences(look);
  check_unknown(look);
  enum Column { kRenewed, kAge, kLeft, kExample, kColumns };
  const auto rows = look.ask(
      "claims",
      tables::expanded(
          "SELECT count(*) FILTER (WHERE held) AS renewed, max(age) FILTER (WHERE held) AS age, "
          "count(*) FILTER (WHERE NOT held) AS left, (array_agg(quote_literal(scope) || ' ' || "
          "quote_literal(key) || ' by ' || owner ORDER BY held DESC, age DESC))[1] AS example "
          "FROM (SELECT scope, key, owner, lease_until > clock_timestamp() AS held, "
          "floor(extract(epoch FROM clock_timestamp() - first_seen) * 1000)::bigint AS age "
          "FROM \"{schema}\".claims WHERE state = 'processing' AND NOT (on_lapse = "
          "'unknown' AND lease_until <= clock_timestamp())) AS c "
          "WHERE age > 12 * {patience} OR NOT held",
          "patience", std::to_string(options.patience_ms)));
  if (!rows) return;
  if (rows->number(0, kRenewed) > 0) {
    look.findings().warn("claims",
                         rows->text(0, kRenewed) +
                             " leases are renewed without an end, the oldest "
                             "for " +
                             span_text(rows->number(0, kAge)) + ": " + rows->text(0, kExample),
                         "look at that worker; when it ends, its key is free after the lease");
    look.findings().figure("held", rows->number(0, kRenewed));
  } else if (rows->number(0, kLeft) > 0) {
    look.findings().warn("claims",
                         rows->text(0, kLeft) + " claims were left by workers that ended, as " +
                             rows->text(0, kExample),
                         "claim these keys again (check_and_lock) and finish their work");
    look.findings().figure("left", rows->number(0, kLeft));
  }
}

void check_vacuum(Look& look) {
  enum Column { kName, kDead, kLive, kVacuumed, kAutovacuum, kColumns };
  const auto rows = look.ask(
      "dead rows",
      "SELECT s.relname AS name, s.n_dead_tup AS dead, s.n_live_tup AS live, "
      "coalesce(to_char(greatest(s.last_autovacuum, s.last_vacuum), 'YYYY-MM-DD HH24:MI'), "
      "'never') AS vacuumed, current_setting('autovacuum') AS autovacuum FROM pg_stat_user_tables "
      "AS s "
      "WHERE s.schemaname = '{schema}' ORDER BY s.n_dead_tup DESC LIMIT 1");
  if (!rows || rows->size() == 0) return;
  const std::int64_t dead = rows->number(0, kDead);
  const std::string found =
      base::format("at most {} in a table ({}, with {} live ones; estimates), vacuumed: {}", dead,
                   rows->text(0, kName), rows->text(0, kLive), rows->text(0, kVacuumed));
  if (rows->at(0, kAutovacuum) == "off") {
    look.findings().warn("dead rows", "autovacuum is off; " + found,
                         "ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf();");
  } else if (dead > 20'000 && dead > rows->number(0, kLive) / 2) {
    look.findings().warn(
        "dead rows", found,
        look.named("VACUUM (VERBOSE, ANALYZE) \"{schema}\"." + rows->text(0, kName) +
                   "; if they stay, end the transaction named under transactions"));
  } else {
    look.findings().ok("dead rows", found);
  }
  look.findings().figure("dead_rows", dead);
}

}  // namespace

void check_contents(const CheckupOptions& options, Look& look) {
  check_ids(look);
  check_equal_events(look);
  check_inbox_ids(look);
  check_numbers(look);
  check_lanes(options, look);
  check_retries(look);
  check_dead_letters(look);
  check_claims(options, look);
  check_size(look);
  check_retention(look);
  check_expired(options, look);
  check_vacuum(look);
}

}  // namespace hapax::postgres
