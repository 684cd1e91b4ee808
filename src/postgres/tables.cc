// The tables of an application's database in PostgreSQL: calls of the SQL functions that
// migrations/postgres defines, one round trip each.
#include "tables/tables.h"

#include <unordered_map>
#include <utility>

#include <hapax/postgres.h>

#include "base/format.h"
#include "postgres/connection.h"
#include "postgres/migrate.h"
#include "postgres/publish.h"

namespace hapax::postgres {

namespace {

using tables::ClaimKey;
using tables::ClaimWish;
using tables::MessageRow;
using tables::Resolving;
using tables::Retained;
using tables::Settling;
using tables::Taken;
using tables::text_of;

std::string interval(Duration span) { return base::format("{} milliseconds", span.count()); }

void add_retention(Values& values, Window window) {
  if (window.is_forever()) {
    values.null();
  } else {
    values.text(base::format("{} seconds", window.raw()));
  }
}

// A timestamptz as milliseconds since 1970. Functions and operators are named with their schema:
// what somebody has put before pg_catalog on the caller's search_path would be taken.
std::string ms(const std::string& column) {
  return "(pg_catalog.date_part('epoch', " + column +
         ") OPERATOR(pg_catalog.*) 1000::double precision)::bigint AS " + column;
}

template <tables::Columns Column>
Time time_in(const Rows& rows, std::size_t row, Column column) {
  return rows.is_null(row, column) ? Time::max() : time_from_ms(rows.number(row, column));
}

Taking taking_of(std::string_view word) {
  if (word == "fresh") return Taking::kFresh;
  return word == "conflict" ? Taking::kConflict : Taking::kDuplicate;
}

enum class SettledColumn { kVerdict, kCurrent, kColumns };
constexpr const char* kSettledColumns = "verdict, current";

Verdict done_or_fenced(const Rows& rows, Fence fence) {
  using enum SettledColumn;
  if (rows.at(0, kVerdict) == "done") return Done{};
  return Fenced{static_cast<std::uint64_t>(rows.number(0, kCurrent)), fence.value};
}

enum class ClaimColumn {
  kVerdict,
  kFence,
  kAttempt,
  kLeaseUntil,
  kHolder,
  kOutcome,
  kFirstSeen,
  kSettledAt,
  kExpiresAt,
  kStored,
  kReason,
  kFormer,
  kColumns
};
std::string claim_columns() {
  return "verdict, fence, attempt, " + ms("lease_until") + ", holder, outcome, " +
         ms("first_seen") + ", " + ms("settled_at") + ", " + ms("expires_at") +
         ", stored, reason, former";
}

Verdict claim_verdict(const Rows& rows, const ClaimWish& wish) {
  using enum ClaimColumn;
  const std::string_view word = rows.at(0, kVerdict);
  const auto attempt = static_cast<std::uint32_t>(rows.number(0, kAttempt));
  const Fence fence{static_cast<std::uint64_t>(rows.number(0, kFence))};
  if (word == "fresh") {
    return Claimed{fence, attempt, time_in(rows, 0, kLeaseUntil),
                   tables::former_of(attempt, rows.at(0, kFormer) == "lapsed")};
  }
  if (word == "in_progress") {
    return InProgress{rows.text(0, kHolder), time_in(rows, 0, kLeaseUntil), attempt};
  }
  if (word == "unknown") {
    return UnknownOutcome{rows.text(0, kHolder), rows.text(0, kReason),
                          time_in(rows, 0, kSettledAt)};
  }
  if (word == "conflict") {
    return Conflict{tables::to_fingerprint(rows.bytes(0, kStored)),
                    tables::to_fingerprint(wish.fingerprint), time_in(rows, 0, kFirstSeen)};
  }
  return DuplicateClaim{StoredResult{.body = rows.bytes(0, kOutcome)}, fence,
                        time_in(rows, 0, kSettledAt), time_in(rows, 0, kExpiresAt)};
}

class PostgresTables final : public tables::Tables {
 public:
  PostgresTables(pg_conn* connection, const PostgresOptions& options)
      : connection_(Connection::borrow(connection)),
        schema_(options.schema),
        prepared_(options.prepared) {}

  Status check() {
    HAPAX_CHECK(connection_.check_encoding());
    return check_version(connection_, schema_, tables::kNeeds);
  }

  [[nodiscard]] bool in_transaction() const override { return connection_.in_transaction(); }
  Status begin() override { return run("BEGIN"); }
  Status commit() override {
    if (!in_transaction() && !connection_.lost()) {
      return Error{Errc::kPreconditionFailed, "the work has ended the transaction it ran in"};
    }
    return connection_.commit();
  }
  Status run(const std::string& sql) override {
    HAPAX_CHECK(connection_.run(sql));
    return Ok{};
  }

  Status publish(std::span<const Event> events) override {
    return events.size() == 1 ? publish_one(events.front()) : publish_all(events);
  }

  Result<Taken> take(const MessageRow& message, Window retention) override {
    Values values = message_values(message);
    values.bytes(message.fingerprint);
    add_retention(values, retention);
    enum Column { kVerdict, kOutcome, kReceivedAt, kStored, kColumns };
    HAPAX_TRY(const Rows rows, ask("SELECT verdict, outcome, " + ms("received_at") +
                                       ", stored FROM {}.inbox_take("
                                       "$1, $2, $3, $4)",
                                   values));
    return Taken{taking_of(rows.at(0, kVerdict)), rows.bytes(0, kOutcome), rows.bytes(0, kStored),
                 time_in(rows, 0, kReceivedAt)};
  }

  Result<std::optional<Taken>> find(const MessageRow& message) override {
    enum Column { kSame, kOutcome, kFingerprint, kReceivedAt, kColumns };
    HAPAX_TRY(const Rows rows,
              ask("SELECT fingerprint IS NULL OR fingerprint OPERATOR(pg_catalog.=) $3 AS same, "
                  "outcome, fingerprint, " +
                      ms("received_at") +
                      " FROM {}.inbox WHERE subscriber OPERATOR(pg_catalog.=) $1 "
                      "AND message_id OPERATOR(pg_catalog.=) $2",
                  message_values(message).bytes(message.fingerprint)));
    if (rows.size() == 0) return std::optional<Taken>();
    const Taking taking = rows.is_true(0, kSame) ? Taking::kDuplicate : Taking::kConflict;
    return std::optional(Taken{taking, rows.bytes(0, kOutcome), rows.bytes(0, kFingerprint),
                               time_in(rows, 0, kReceivedAt)});
  }

  Status keep_outcome(const MessageRow& message, std::string_view outcome) override {
    HAPAX_CHECK(ask("SELECT {}.inbox_outcome($1, $2, $3)", message_values(message).bytes(outcome)));
    return Ok{};
  }

  Result<std::vector<Taking>> accept(std::span<const MessageRow> messages,
                                     Window retention) override;

  Result<Verdict> claim(ClaimKey key, const ClaimWish& wish) override {
    Values values = key_values(key);
    values.text(wish.owner).text(interval(wish.lease));
    wish.fingerprint.empty() ? values.null() : values.bytes(wish.fingerprint);
    values.text(tables::word_of(wish.on_lapse));
    HAPAX_TRY(const Rows rows,
              ask("SELECT " + claim_columns() + " FROM {}.check_and_lock($1, $2, $3, $4, $5, $6)",
                  values));
    return claim_verdict(rows, wish);
  }

  Result<Verdict> renew(ClaimKey key, Fence fence, Duration lease) override {
    enum Column { kVerdict, kCurrent, kLeaseUntil, kColumns };
    HAPAX_TRY(const Rows rows, ask("SELECT verdict, current, " + ms("lease_until") +
                                       " FROM {}.renew($1, $2, $3, $4)",
                                   fenced_values(key, fence).text(interval(lease))));
    if (rows.at(0, kVerdict) == "done") return Verdict{Renewed{time_in(rows, 0, kLeaseUntil)}};
    return Verdict{Fenced{static_cast<std::uint64_t>(rows.number(0, kCurrent)), fence.value}};
  }

  Result<Verdict> settle(ClaimKey key, Fence fence, const Settling& settling) override {
    Values values = fenced_values(key, fence);
    values.text(hapax::word_of(settling.status)).bytes(settling.outcome).text(settling.reason);
    add_retention(values, settling.retention);
    HAPAX_TRY(const Rows rows, ask(std::string("SELECT ") + kSettledColumns +
                                       " FROM {}.claim_settle($1, $2, $3, $4, $5, $6, $7)",
                                   values));
    return done_or_fenced(rows, fence);
  }

  Result<Verdict> drop(ClaimKey key, Fence fence) override {
    HAPAX_TRY(const Rows rows,
              ask(std::string("SELECT ") + kSettledColumns + " FROM {}.claim_drop($1, $2, $3)",
                  fenced_values(key, fence)));
    return done_or_fenced(rows, fence);
  }

  Status resolve(ClaimKey key, const Resolving& resolving) override {
    Values values = key_values(key);
    values.text(tables::word_of(resolving.resolution)).text(resolving.actor);
    values.text(resolving.reason).bytes(resolving.outcome);
    add_retention(values, resolving.retention);
    HAPAX_CHECK(ask("SELECT {}.resolve($1, $2, $3, $4, $5, $6, $7)", values));
    return Ok{};
  }

  Status forget(ClaimKey key, std::string_view actor, std::string_view reason) override {
    HAPAX_CHECK(ask("SELECT {}.forget($1, $2, $3, $4)", key_values(key).text(actor).text(reason)));
    return Ok{};
  }

  Result<JobStatus> status(ClaimKey key) override {
    HAPAX_TRY(const Rows rows, ask("SELECT {}.get_status($1, $2)", key_values(key)));
    return tables::status_of(rows.at(0, kOnly));
  }

  Result<std::uint64_t> forget_expired(std::uint32_t most) override {
    HAPAX_TRY(const Rows rows, ask("SELECT {}.forget_expired($1)", Values().number(most)));
    return static_cast<std::uint64_t>(rows.number(0, kOnly));
  }

  Result<std::optional<std::string>> retain(const Retained& which, Window retention,
                                            std::string_view behind, std::uint32_t most) override {
    Values values;
    values.text(which.name);
    add_retention(values, retention);
    values.text(behind).number(most);
    const bool inbox = which.table == Retained::kInbox;
    HAPAX_TRY(const Rows rows, ask(inbox ? "SELECT {}.inbox_retain($1, $2, $3, $4)"
                                         : "SELECT {}.claims_retain($1, $2, $3, $4)",
                                   values));
    if (rows.is_null(0, kOnly)) return std::optional<std::string>();
    return std::optional(rows.text(0, kOnly));
  }

 private:
  // {} in the statement is our schema.
  Result<Rows> ask(const std::string& sql, const Values& values) {
    HAPAX_CHECK(connection_.check_encoding());
    return connection_.ask(expanded(sql), values);
  }
  [[nodiscard]] std::string expanded(const std::string& sql) const {
    return tables::expanded(sql, "", "\"" + schema_ + "\"");
  }
  static Values message_values(const MessageRow& message) {
    return Values().text(message.subscriber).text(message.id);
  }
  static Values key_values(ClaimKey key) { return Values().text(key.scope).text(key.key); }
  static Values fenced_values(ClaimKey key, Fence fence) {
    return key_values(key).number(static_cast<std::int64_t>(fence.value));
  }

  Status publish_one(const Event& event);
  Status prepare_once(const std::string& name);
  Status publish_prepared(const Values& values);
  Status publish_all(std::span<const Event> events);

  Connection connection_;
  std::string schema_;
  bool prepared_;
  bool has_publish_ = false;  // this session has it prepared
};

// O1, O2: kept by outbox_xid() and publish_all() of migrations/postgres, for every language.
Status PostgresTables::publish_one(const Event& event) {
  Values values;
  values.text(event.type).bytes(event.payload);
  values.text_or_null(text_of(event.key)).text(text_of(event.id));
  values.text_or_null(tables::headers_json(event));
  values.text_or_null(event.correlation_id).text_or_null(event.causation_id);
  if (prepared_) return publish_prepared(values);
  HAPAX_CHECK(ask("SELECT {}.publish($1, $2, $3, $4, $5, $6, $7)", values));
  return Ok{};
}

// Another Database of this session may have prepared it.
Status PostgresTables::prepare_once(const std::string& name) {
  HAPAX_TRY(const Rows rows, connection_.ask("SELECT 1 FROM pg_catalog.pg_prepared_statements "
                                             "WHERE name OPERATOR(pg_catalog.=) $1",
                                             Values().text(name)));
  return rows.size() != 0 ? Ok{} : connection_.prepare(name, expanded(kPublishStatement));
}

Status PostgresTables::publish_prepared(const Values& values) {
  HAPAX_CHECK(connection_.check_encoding());
  const std::string name = schema_ + ".publish";
  if (!has_publish_) HAPAX_CHECK(prepare_once(name));
  has_publish_ = true;
  const auto done = connection_.ask_prepared(name, values);
  if (done) return Ok{};
  constexpr std::string_view kNoSuchStatement = "26000";
  if (connection_.sqlstate() != kNoSuchStatement) return done.error();
  // The application has discarded it. This transaction has failed, the next one prepares it again.
  has_publish_ = false;
  return Error{Errc::kLocked, "the session lost its prepared statement '" + name +
                                  "' (DISCARD, DEALLOCATE, or a pooler that changes sessions: then "
                                  "set PostgresOptions::prepared to false). Run it again."};
}

Status PostgresTables::publish_all(std::span<const Event> events) {
  using Array = std::vector<std::optional<std::string_view>>;
  const auto or_null = [](std::string_view text) {
    return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
  };
  std::vector<std::string> payloads;
  std::vector<std::string> headers;
  for (const Event& event : events) {
    payloads.push_back(hex_of(event.payload));
    headers.push_back(tables::headers_json(event));
  }
  Array types, payloads_hex, keys, ids, headers_json, correlation_ids, causation_ids;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    types.emplace_back(event.type);
    payloads_hex.emplace_back(payloads[i]);
    keys.push_back(or_null(text_of(event.key)));
    ids.emplace_back(text_of(event.id));
    headers_json.push_back(or_null(headers[i]));
    correlation_ids.push_back(or_null(event.correlation_id));
    causation_ids.push_back(or_null(event.causation_id));
  }
  Values values;
  for (const Array* each :
       {&types, &payloads_hex, &keys, &ids, &headers_json, &correlation_ids, &causation_ids}) {
    values.text(array_of(*each));
  }
  HAPAX_CHECK(ask("SELECT {}.publish_all($1, $2, $3, $4, $5, $6, $7)", values));
  return Ok{};
}

Result<std::vector<Taking>> PostgresTables::accept(std::span<const MessageRow> messages,
                                                   Window retention) {
  std::vector<std::optional<std::string_view>> ids;
  std::vector<std::string> hashes;
  std::vector<std::optional<std::string_view>> fingerprints;
  // The first place of each id; a repetition within the batch is a duplicate, or a conflict.
  std::unordered_map<std::string_view, std::size_t> first;
  std::vector<Taking> takings(messages.size(), Taking::kDuplicate);
  hashes.reserve(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto [found, is_new] = first.emplace(messages[i].id, i);
    if (!is_new) {
      const bool same = messages[found->second].fingerprint == messages[i].fingerprint;
      takings[i] = same ? Taking::kDuplicate : Taking::kConflict;
      continue;
    }
    hashes.push_back(hex_of(messages[i].fingerprint));
    ids.emplace_back(messages[i].id);
    fingerprints.emplace_back(hashes.back());
  }
  Values values;
  values.text(messages.front().subscriber).text(array_of(ids)).text(array_of(fingerprints));
  add_retention(values, retention);
  enum Column { kMessageId, kVerdict, kColumns };
  HAPAX_TRY(const Rows rows,
            ask("SELECT message_id, verdict FROM {}.inbox_accept($1, $2, $3, $4)", values));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    takings[first.at(rows.at(row, kMessageId))] = taking_of(rows.at(row, kVerdict));
  }
  return takings;
}

}  // namespace

}  // namespace hapax::postgres

namespace hapax {

Result<std::unique_ptr<Database>> on_postgres(pg_conn* connection, const PostgresOptions& options) {
  auto tables = std::make_unique<postgres::PostgresTables>(connection, options);
  HAPAX_CHECK(tables->check());
  return std::make_unique<Database>(std::move(tables));
}

}  // namespace hapax
