#include "job_claim_backend.h"

#include <map>
#include <utility>

#include <gtest/gtest.h>

#include <hapax/job_claims.h>
#include <hapax/postgres.h>
#include <hapax/sqlite.h>

#include "../postgres/cluster.h"
#include "postgres/migrate.h"
#include "sqlite/migrate.h"
#include "tables/columns.h"
#include "tables/migration.h"
#include "tables/tables.h"

namespace hapax::contract {

namespace {

using Texts = std::vector<std::string>;

// A claim as the table shows it to people: bytes in hexadecimal, times in milliseconds.
enum ClaimColumn {
  kFence,
  kAttempts,
  kFingerprint,
  kOwner,
  kReason,
  kState,
  kFirstSeen,
  kSettledAt,
  kLeaseUntil,
  kExpiresAt,
  kOutcome,
  kColumns
};
enum class AuditColumn { kAct, kScope, kKey, kActor, kReason, kColumns };

// The columns of one row; text(column) reads one of them.
template <tables::Columns Column, class Text>
Texts texts_of(const Text& text) {
  Texts all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Column::kColumns); ++i) {
    all.push_back(text(static_cast<Column>(i)));
  }
  return all;
}

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// A name that a schema of ours may have, and another one for every folder.
std::string schema_of(const std::filesystem::path& folder) {
  return "f_" + postgres::hex_of(folder.filename().string()).substr(2);
}

Time time_of(const std::string& ms) {
  return ms.empty() ? Time::max() : time_from_ms(std::stoll(ms));
}

// The same for both databases, apart from how their SQL is written.
class JobClaimBackend : public ClaimBackend {
 public:
  Told run(const Op& op, std::optional<std::string_view> /*commit_id*/) override {
    const Time from = earliest();
    Result<Verdict> verdict = std::visit([&](const auto& each) { return act(each); }, op);
    const When when{from, latest()};
    if (!verdict) return {Refused{verdict.error()}, when};
    return {*std::move(verdict), when};
  }

  bool settle_with_effect(const Settle& settle, First first) override {
    const auto settles = [&]() -> Status {
      HAPAX_TRY(const Verdict verdict, act(settle));
      if (std::holds_alternative<Done>(verdict)) return Ok{};
      return Error{Errc::kConflict, std::string(word_of(verdict))};
    };
    const auto takes_effect = [&]() -> Status {
      return change("INSERT INTO {}effects VALUES ('paid')");
    };
    return database()
        .with_transaction([&]() -> Status {
          if (first == First::kSettle) HAPAX_CHECK(settles());
          HAPAX_CHECK(takes_effect());
          return first == First::kSettle ? Ok{} : settles();
        })
        .has_value();
  }
  std::uint64_t effects() override {
    return std::stoull(ask_one("SELECT count(*) FROM {}effects"));
  }

  // Of a claim there is only a status to ask for; the rest is what the table shows to people.
  std::optional<ClaimStatus> find(std::string_view scope, std::string_view key) override {
    const JobStatus state = *claims(scope).get_status(std::string(key));
    if (state == JobStatus::kNotSeen) return std::nullopt;
    const Texts row = row_of(scope, key);
    ClaimStatus status;
    status.state = state_of(state);
    status.fence = Fence{std::stoull(row[kFence])};
    status.attempts = static_cast<std::uint32_t>(std::stoul(row[kAttempts]));
    status.fingerprint = tables::to_fingerprint(bytes_of(row[kFingerprint]));
    status.owner = row[kOwner];
    status.reason = row[kReason];
    const bool holds = row[kState] == "processing";
    status.since = time_of(holds ? row[kFirstSeen] : row[kSettledAt]);
    status.until = time_of(holds ? row[kLeaseUntil] : row[kExpiresAt]);
    if (state == JobStatus::kCompleted)
      status.result = StoredResult{.body = bytes_of(row[kOutcome])};
    return status;
  }

  std::vector<std::string> audit() override {
    std::vector<std::string> lines;
    for (const Texts& row : audit_rows()) {
      const auto text = [&](AuditColumn column) { return row[static_cast<std::size_t>(column)]; };
      lines.push_back(R"({"act":")" + text(AuditColumn::kAct) + R"(","subject":")" +
                      text(AuditColumn::kScope) + "/" + text(AuditColumn::kKey) + R"(","actor":")" +
                      text(AuditColumn::kActor) + R"(","reason":")" + text(AuditColumn::kReason) +
                      R"("})");
    }
    return lines;
  }

  Counts counts() override { return {}; }
  Time now() override { return earliest(); }
  void churn() override {}

 protected:
  virtual Database& database() = 0;
  static constexpr const char* kAuditSql =
      "SELECT act, scope, key, actor, reason FROM {}claim_audit ORDER BY n";

  // {} is what stands before the name of a table.
  virtual Status change(const std::string& sql) = 0;
  virtual std::string ask_one(const std::string& sql) = 0;
  virtual Texts row_of(std::string_view scope, std::string_view key) = 0;  // by ClaimColumn
  virtual std::vector<Texts> audit_rows() = 0;                             // by AuditColumn
  // The database's clock, and not behind or before it by what it rounds.
  virtual Time earliest() = 0;
  virtual Time latest() = 0;

 private:
  JobClaims claims(std::string_view scope) { return {database(), std::string(scope)}; }

  static ClaimState state_of(JobStatus status) {
    if (status == JobStatus::kCompleted) return ClaimState::kCompleted;
    if (status == JobStatus::kFailed) return ClaimState::kFailed;
    return status == JobStatus::kUnknown ? ClaimState::kUnknown : ClaimState::kProcessing;
  }

  // A store keeps the retention with the claim; here it is given with what the work came to.
  Window retention_of(std::string_view scope, std::string_view key) {
    const auto kept = retention_.find({std::string(scope), std::string(key)});
    return kept == retention_.end() ? limits::kWindowDefault : kept->second;
  }

  Result<Verdict> act(const Claim& op) {
    retention_.insert_or_assign({std::string(op.scope), std::string(op.key)}, op.retention);
    return claims(op.scope).check_and_lock(std::string(op.key), std::string(op.owner), op.lease,
                                           op.content, op.on_lapse);
  }
  Result<Verdict> act(const Renew& op) {
    return claims(op.scope).renew(std::string(op.key), op.fence, op.lease);
  }
  Result<Verdict> act(const Settle& op) {
    JobClaims claims = this->claims(op.scope);
    const std::string key(op.key);
    const std::string reason(op.reason);
    switch (op.outcome) {
      case Outcome::kCompleted:
        return claims.mark_complete(key, op.fence, std::string(op.result.body),
                                    retention_of(op.scope, op.key));
      case Outcome::kFailed:
        return claims.mark_failed(key, op.fence, reason);
      case Outcome::kUnknown:
        return claims.mark_unknown(key, op.fence, reason);
      case Outcome::kReleased:
        return claims.release(key, op.fence);
    }
    return Error{Errc::kInvalidArgument, "no such outcome"};
  }
  Result<Verdict> act(const Resolve& op) {
    HAPAX_CHECK(claims(op.scope).resolve(
        std::string(op.key), op.resolution, {std::string(op.actor), std::string(op.reason)},
        std::string(op.result.body), retention_of(op.scope, op.key)));
    return Verdict{Done{}};
  }
  Result<Verdict> act(const Forget& op) {
    HAPAX_CHECK(claims(op.scope).forget(std::string(op.key),
                                        {std::string(op.actor), std::string(op.reason)}));
    return Verdict{Done{}};
  }
  template <class Other>
  Result<Verdict> act(const Other& /*op*/) {
    return Error{Errc::kInvalidArgument, "an operation that is not about claims"};
  }

  std::map<std::pair<std::string, std::string>, Window> retention_;
};

// A schema of its own for each folder.
class OnPostgres final : public JobClaimBackend {
 public:
  explicit OnPostgres(std::string schema)
      : schema_(std::move(schema)),
        connection_(
            *postgres::Connection::open(testing_postgres::Cluster::instance().uri("postgres"))) {
    EXPECT_TRUE(connection_.run("SET client_min_messages = warning"));
    const auto made = postgres::migrate(connection_, {.schema = schema_});
    EXPECT_TRUE(made) << made.error().text();
    EXPECT_TRUE(ask("CREATE TABLE IF NOT EXISTS {}effects (what text)", {}));
    database_ = *on_postgres(connection_.raw(), {.schema = schema_});
  }

 protected:
  Database& database() override { return *database_; }
  Status change(const std::string& sql) override {
    HAPAX_CHECK(ask(sql, {}));
    return Ok{};
  }
  std::string ask_one(const std::string& sql) override {
    return ask(sql, {}).value().text(0, tables::kOnly);
  }
  std::vector<Texts> audit_rows() override { return read<AuditColumn>(*ask(kAuditSql, {})); }
  Texts row_of(std::string_view scope, std::string_view key) override {
    const auto ms = [](const std::string& column) {
      return ", (extract(epoch FROM " + column + ") * 1000)::bigint AS " + column;
    };
    return read<ClaimColumn>(
               *ask("SELECT fence, attempts, encode(fingerprint, 'hex') AS fingerprint, owner, "
                    "reason, state" +
                        ms("first_seen") + ms("settled_at") + ms("lease_until") + ms("expires_at") +
                        ", encode(outcome, 'hex') AS outcome FROM {}claims "
                        "WHERE scope = $1 AND key = $2",
                    {std::string(scope), std::string(key)}))
        .at(0);
  }
  // Its times have microseconds, and are told rounded to a millisecond.
  Time earliest() override { return clock("floor") - Duration{1}; }
  Time latest() override { return clock("ceil") + Duration{1}; }

 private:
  Result<postgres::Rows> ask(const std::string& sql, const Texts& values) {
    postgres::Values given;
    for (const std::string& value : values) given.text(value);
    return connection_.ask(tables::expanded(sql, "", '"' + schema_ + "\"."), given);
  }
  template <tables::Columns Column>
  static std::vector<Texts> read(const postgres::Rows& rows) {
    std::vector<Texts> all;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      all.push_back(texts_of<Column>([&](Column column) { return rows.text(row, column); }));
    }
    return all;
  }
  Time clock(const std::string& rounded) {
    return time_of(ask_one("SELECT " + rounded + "(extract(epoch FROM clock_timestamp()) * 1000)"));
  }

  const std::string schema_;
  postgres::Connection connection_;
  std::unique_ptr<Database> database_;
};

class OnSqlite final : public JobClaimBackend {
 public:
  explicit OnSqlite(const std::string& path) : connection_(*sqlite::Connection::open(path)) {
    const auto made = sqlite::migrate(connection_, {});
    EXPECT_TRUE(made) << made.error().text();
    EXPECT_TRUE(ask("CREATE TABLE IF NOT EXISTS {}effects (what TEXT)", {}));
    database_ = *on_sqlite(connection_.raw());
  }

 protected:
  Database& database() override { return *database_; }
  Status change(const std::string& sql) override {
    HAPAX_CHECK(ask(sql, {}));
    return Ok{};
  }
  std::string ask_one(const std::string& sql) override {
    return text_of(ask(sql, {})->at(0)[tables::kOnly]);
  }
  std::vector<Texts> audit_rows() override { return read<AuditColumn>(*ask(kAuditSql, {})); }
  Texts row_of(std::string_view scope, std::string_view key) override {
    return read<ClaimColumn>(
               *ask("SELECT fence, attempts, hex(fingerprint) AS fingerprint, owner, reason, "
                    "state, first_seen, settled_at, lease_until, expires_at, "
                    "hex(outcome) AS outcome FROM {}claims WHERE scope = ?1 AND key = ?2",
                    {std::string(scope), std::string(key)}))
        .at(0);
  }
  Time earliest() override {
    return time_of(
        ask_one("SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"));
  }
  Time latest() override { return earliest(); }

 private:
  Result<std::vector<sqlite::Row>> ask(const std::string& sql, const Texts& values) {
    std::vector<sqlite::Value> given;
    for (const std::string& value : values) given.push_back(sqlite::Value::text(value));
    return connection_.ask(tables::expanded(sql, "", "hapax_"), given);
  }
  static std::string text_of(const sqlite::Value& value) {
    const bool number = value.kind == sqlite::Value::Kind::kNumber;
    return number ? std::to_string(value.number) : value.bytes;
  }
  template <tables::Columns Column>
  static std::vector<Texts> read(const std::vector<sqlite::Row>& rows) {
    std::vector<Texts> all;
    for (const sqlite::Row& row : rows) {
      all.push_back(texts_of<Column>([&](Column column) { return text_of(row[column]); }));
    }
    return all;
  }

  sqlite::Connection connection_;
  std::unique_ptr<Database> database_;
};

std::vector<Lack> lacks_of_tables() {
  return {{Feature::kFullResults, "an outcome is one sequence of bytes, the body"},
          {Feature::kTombstones, "a row that is over is deleted as a whole"},
          {Feature::kAbandoned, "a retention begins with the settle; what is open stays"},
          {Feature::kCommitIds, "the application's transaction is the commit, and has no id"},
          {Feature::kCounts, "there are rows to count, and no statistics"}};
}

}  // namespace

std::vector<ClaimBackendKind> job_claim_backends() {
  std::vector<Lack> postgres = lacks_of_tables();
  postgres.push_back({Feature::kAnyBytes, "the type text of PostgreSQL has no NUL and is UTF-8"});
  return {{"job_postgres",
           [](const std::filesystem::path& folder) {
             return std::make_unique<OnPostgres>(schema_of(folder));
           },
           postgres},
          {"job_sqlite",
           [](const std::filesystem::path& folder) {
             return std::make_unique<OnSqlite>((folder / "application.db").string());
           },
           lacks_of_tables()}};
}

}  // namespace hapax::contract
