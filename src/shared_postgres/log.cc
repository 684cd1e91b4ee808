#include "shared_postgres/log.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/mutex.h"
#include "journal/names.h"
#include "postgres/migrate.h"
#include "postgres/pooling.h"

namespace hapax::shared_postgres {

namespace {

constexpr std::size_t kRecentBytesMax = std::size_t{32} << 20;
constexpr std::size_t kRowsAtOnce = 32;
constexpr std::chrono::milliseconds kSilenceMax{5'000};
constexpr std::chrono::milliseconds kLockMax{1'000};            // An append is over much sooner.
constexpr std::chrono::milliseconds kMakingSilenceMax{60'000};  // Others may be making them.

std::string identifier(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"') text += '"';
    text += c;
  }
  return text + '"';
}

constexpr std::string_view kNowColumn =
    "(extract(epoch from clock_timestamp()) * 1000)::int8 AS now_ms";

}  // namespace

// --- time

std::int64_t DatabaseClock::wall_ms() { return steady_ms() + ahead_ms_.load(); }

void DatabaseClock::told(std::int64_t database_ms) { ahead_ms_.store(database_ms - steady_ms()); }

// --- recent batches

void RecentBatches::add(const ports::LogBatch& batch) {
  const base::MutexLock lock(mutex_);
  // One that was read again, after others: it is the only one of use.
  if (!batches_.empty() && batches_.back().at >= batch.at) {
    batches_.clear();
    bytes_ = 0;
  }
  batches_.push_back({batch.at, batch.bytes});
  bytes_ += batch.bytes.size();
  while (bytes_ > kRecentBytesMax && batches_.size() > 1) {
    bytes_ -= batches_.front().bytes.size();
    batches_.pop_front();
  }
}

void RecentBatches::clear() {
  const base::MutexLock lock(mutex_);
  batches_.clear();
  bytes_ = 0;
}

bool RecentBatches::read(std::uint32_t segment, std::uint64_t offset, std::size_t size,
                         char* into) const {
  const base::MutexLock lock(mutex_);
  const ports::LogPlace wanted{segment, static_cast<std::uint32_t>(offset)};
  const auto behind =
      std::upper_bound(batches_.begin(), batches_.end(), wanted,
                       [](const ports::LogPlace& at, const Kept& kept) { return at < kept.at; });
  if (behind == batches_.begin()) return false;
  const Kept& kept = *std::prev(behind);
  if (kept.at.segment != segment) return false;
  const std::size_t from = wanted.offset - kept.at.offset;
  if (from + size > kept.bytes.size()) return false;
  std::memcpy(into, kept.bytes.data() + from, size);
  return true;
}

// --- tables

std::string table_of(const StorePlace& place, std::string_view name) {
  return identifier(place.schema) + "." + identifier(name);
}

namespace {

enum class FormatColumn { kVersion, kSegmentBytes, kColumns };

std::string format_sql(const StorePlace& place) {
  return "SELECT version, segment_bytes FROM " + table_of(place, "format");
}

Result<std::uint32_t> segment_bytes_of(const StorePlace& place, const Rows& found) {
  using enum FormatColumn;
  const std::int64_t version = found.size() == 1 ? found.number(0, kVersion) : 0;
  if (version >= kStoreVersionFirst && version <= kStoreVersion) {
    return static_cast<std::uint32_t>(found.number(0, kSegmentBytes));
  }
  return Error{
      Errc::kFormatVersion,
      base::format("the store in schema {} has format {}, this program knows formats {} to {}",
                   place.schema, found.size() == 0 ? std::string("none") : found.text(0, kVersion),
                   kStoreVersionFirst, kStoreVersion)};
}

// The name of the schema last: nothing is looked for in it.
std::string tables_of(const StorePlace& place, std::uint32_t segment_bytes) {
  std::string sql = tables::expanded(tables_sql(), "segment_bytes", std::to_string(segment_bytes));
  sql = tables::expanded(sql, "version", std::to_string(kStoreVersion));
  return "SET LOCAL client_min_messages = warning;"
         "SELECT pg_advisory_xact_lock(hashtext('hapax store tables'));" +
         tables::expanded(sql, "schema", identifier(place.schema));
}

}  // namespace

Result<std::uint32_t> make_store_tables(const StorePlace& place, std::uint32_t segment_bytes) {
  ConnectOptions options;
  options.notice = place.notice;
  options.silence_max = kMakingSilenceMax;
  HAPAX_TRY(Connection connection, Connection::open(place.uri, options));
  HAPAX_CHECK(postgres::check_keeps_session(connection, place.uri, place.notice));
  HAPAX_CHECK(settle_session(connection, kNoLockTimeout));
  const std::string version = format_sql(place);
  auto there = connection.run(version);
  if (there) return segment_bytes_of(place, *there);
  if (connection.sqlstate() != "42P01" && connection.sqlstate() != "3F000") {
    return std::move(there).error();
  }
  HAPAX_CHECK(connection.run("BEGIN;" + tables_of(place, segment_bytes) + "COMMIT"));
  HAPAX_TRY(const Rows found, connection.run(version));
  return segment_bytes_of(place, found);
}

Status check_durable(Connection& connection) {
  enum Column { kSynchronousCommit, kFsync, kStandby, kReadOnly, kColumns };
  HAPAX_TRY(const Rows set,
            connection.run("SELECT current_setting('synchronous_commit') AS synchronous_commit, "
                           "current_setting('fsync') AS fsync, pg_is_in_recovery() AS standby, "
                           "current_setting('default_transaction_read_only') AS read_only"));
  if (set.at(0, kSynchronousCommit) == "off" || set.at(0, kFsync) == "off") {
    return Error{Errc::kInvalidArgument,
                 "the database does not write to disk before it says so (synchronous_commit is " +
                     set.text(0, kSynchronousCommit) + ", fsync is " + set.text(0, kFsync) +
                     "): what is acknowledged could be lost. Turn both on."};
  }
  if (set.is_true(0, kStandby)) {
    return Error{Errc::kUnavailable, "the database is a standby: connect to the primary"};
  }
  if (set.at(0, kReadOnly) == "on") {
    return Error{Errc::kUnavailable,
                 "default_transaction_read_only is on for this database or role: nothing can be "
                 "written. Reset it there."};
  }
  return Ok{};
}

Status check_store_tables(const StorePlace& place) {
  HAPAX_TRY(Connection connection, Connection::open(place.uri, {.notice = place.notice}));
  const auto found = connection.run(format_sql(place));
  if (found) {
    HAPAX_CHECK(segment_bytes_of(place, *found));
    return Ok{};
  }
  if (connection.sqlstate() != "42P01" && connection.sqlstate() != "3F000") return found.error();
  return Error{Errc::kNotFound, "there is no Hapax store in schema " + place.schema};
}

Result<bool> raise_store_version(const StorePlace& place) {
  HAPAX_TRY(Connection connection, Connection::open(place.uri, {.notice = place.notice}));
  HAPAX_CHECK(settle_session(connection, kNoLockTimeout));
  const std::string present = std::to_string(kStoreVersion);
  HAPAX_TRY(const Rows raised,
            connection.run("UPDATE " + table_of(place, "format") + " SET version = " + present +
                           " WHERE version < " + present + " RETURNING version"));
  return raised.size() > 0;
}

// --- the log

PostgresLog::PostgresLog(StorePlace place, DatabaseClock& clock, RecentBatches& recent)
    : place_(std::move(place)), clock_(clock), recent_(recent) {}

// Settings that a role or a database may have for its applications do not fit here: reading a large
// log or removing a segment takes its time, and a keeper is idle for long. A machine that is gone
// must not keep its locks for the hours that TCP takes to notice. And what check_durable() finds
// stays so, whatever the server is told later; of names, only the server's own are meant.
Status settle_session(Connection& connection, std::chrono::milliseconds lock_timeout) {
  const std::string sql =
      "SELECT pg_catalog.set_config(name, wanted.value, false) FROM pg_catalog.pg_settings JOIN "
      "(VALUES "
      "('statement_timeout', '0'), ('transaction_timeout', '0'), ('idle_session_timeout', '0'), "
      "('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'), "
      "('tcp_keepalives_count', '3'), ('default_transaction_isolation', 'read committed'), "
      "('search_path', 'pg_catalog, pg_temp'), "
      "('synchronous_commit', pg_catalog.current_setting('synchronous_commit')), "
      "('lock_timeout', '" +
      std::to_string(lock_timeout.count()) + "')) AS wanted(name, value) USING (name)";
  HAPAX_CHECK(connection.run(sql));
  return Ok{};
}

namespace {

// Of the statements "behind" and "from".
enum class BatchColumn { kSegment, kAt, kLast, kMark, kBytes, kNowMs, kColumns };

}  // namespace

Status PostgresLog::connect() {
  connection_.reset();
  ConnectOptions options;
  options.notice = place_.notice;
  options.application_name = "hapax store log";
  options.silence_max = kSilenceMax;
  HAPAX_TRY(Connection connection, Connection::open(place_.uri, options));
  HAPAX_CHECK(postgres::check_keeps_session(connection, place_.uri, place_.notice));
  // An append waits for another one at the same place, of a server process that stands still,
  // perhaps. Who gave up waiting must not leave a server process behind that still does.
  HAPAX_CHECK(settle_session(connection, kLockMax));
  HAPAX_CHECK(check_durable(connection));
  HAPAX_CHECK(take_part(connection));
  const std::string log = table_of(place_, "log");
  const std::string order = base::format(" ORDER BY segment, at LIMIT {}", kRowsAtOnce);
  // The end is asked for by ORDER BY: for "nothing lies behind" the planner would read all of it.
  HAPAX_CHECK(connection.prepare(
      "append", "INSERT INTO " + log +
                    " SELECT $1::int4, $2::int8, $3::int8, $4::int8, $5::bytea WHERE ($6::bool OR "
                    "EXISTS (SELECT 1 FROM " +
                    log +
                    " WHERE segment = $7::int4 AND at = $8::int8 AND mark = $9::int8)) "
                    "AND NOT coalesce((SELECT (segment, at) > ($7::int4, $8::int8) FROM " +
                    log +
                    " ORDER BY segment DESC, at DESC LIMIT 1), false) "
                    "ON CONFLICT DO NOTHING RETURNING " +
                    std::string(kNowColumn)));
  HAPAX_CHECK(
      connection.prepare("behind",
                         "SELECT segment, at, last, mark, CASE WHEN segment = $1::int4 AND at = "
                         "$2::int8 THEN ''::bytea ELSE bytes END AS bytes, " +
                             std::string(kNowColumn) + " FROM " + log +
                             " WHERE (segment, at) >= ($1::int4, $2::int8)" + order));
  // Not simply "last >= $1": the planner would look for these along the primary key, from the
  // beginning of the log.
  HAPAX_CHECK(connection.prepare(
      "from", "SELECT segment, at, last, mark, bytes, " + std::string(kNowColumn) + " FROM " + log +
                  " l WHERE (segment, at) >= (SELECT segment, at FROM " + log +
                  " WHERE last >= $1::int8 ORDER BY last LIMIT 1)" + order));
  HAPAX_TRY(const Rows now, connection.run("SELECT " + std::string(kNowColumn)));
  clock_.told(now.number(0, kOnly));
  connection_.emplace(std::move(connection));
  return Ok{};
}

// J3. The lock first, and then whether there is a store: who copies has written its note before it
// lets go. A session keeps the lock for as long as anything that it sent can still be committed.
Status PostgresLog::take_part(Connection& connection) {
  Values values;
  values.text(place_.schema).text(kUseName);
  HAPAX_TRY(
      const Rows shared,
      connection.ask("SELECT pg_try_advisory_lock_shared(hashtext($1), hashtext($2))", values));
  if (!shared.is_true(0, kOnly)) {
    return Error{Errc::kUnavailable, "the store in schema " + place_.schema +
                                         " is being copied; it can be used when that has ended"};
  }
  Values notes;
  notes.text(journal::kCopyingName).text(journal::kMovedName);
  HAPAX_TRY(const Rows noted,
            connection.ask(
                "SELECT name FROM " + table_of(place_, "file") + " WHERE name IN ($1, $2)", notes));
  if (noted.size() == 0) return Ok{};
  return Error{Errc::kUnavailable, "the store in schema " + place_.schema +
                                       " was copied meanwhile and cannot be used (" +
                                       noted.text(0, kOnly) + ")"};
}

Status PostgresLog::ready() {
  if (connection_ && !connection_->lost()) return Ok{};
  const Status connected = connect();
  // Not to be mistaken for a batch that is not there.
  if (!connected && connected.error().code == Errc::kNotFound) {
    return Error{Errc::kUnavailable, connected.error().detail};
  }
  return connected;
}

Result<PostgresLog::Put> PostgresLog::append(const ports::LogTip& tip,
                                             const ports::LogBatch& batch) {
  HAPAX_CHECK(ready());
  Values values;
  values.number(batch.at.segment).number(batch.at.offset);
  values.number(static_cast<std::int64_t>(batch.last))
      .number(static_cast<std::int64_t>(batch.mark))
      .bytes(batch.bytes);
  values.text(tip.none ? "t" : "f");
  values.number(tip.at.segment).number(tip.at.offset).number(static_cast<std::int64_t>(tip.mark));
  const auto rows = connection_->ask_prepared("append", values);
  if (!rows) {
    // The server may have committed, or may be about to.
    if (connection_->lost()) return Error{Errc::kOutcomeUnknown, rows.error().detail};
    // Another append at this place takes long: it is worth asking again.
    if (rows.error().code == Errc::kLocked) {
      return Error{Errc::kUnavailable, rows.error().detail};
    }
    return rows.error();
  }
  if (rows->size() == 0) return Put::kNot;
  clock_.told(rows->number(0, kOnly));
  recent_.add(batch);
  return Put::kDone;
}

Result<ports::LogPart> PostgresLog::batches(const std::string& statement, const Values& values) {
  HAPAX_CHECK(ready());
  auto rows = connection_->ask_prepared(statement, values, Rowed::kBinary);
  if (!rows && connection_->lost()) {
    HAPAX_CHECK(ready());  // It was idle for long, perhaps.
    rows = connection_->ask_prepared(statement, values, Rowed::kBinary);
  }
  if (!rows) return std::move(rows).error();
  std::vector<ports::LogBatch> found(rows->size());
  const bool all = found.size() < kRowsAtOnce;
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i].at.segment = integer_at<std::uint32_t>(*rows, i, BatchColumn::kSegment);
    found[i].at.offset =
        static_cast<std::uint32_t>(integer_at<std::uint64_t>(*rows, i, BatchColumn::kAt));
    found[i].last = integer_at<std::uint64_t>(*rows, i, BatchColumn::kLast);
    found[i].mark = integer_at<std::uint64_t>(*rows, i, BatchColumn::kMark);
    found[i].bytes = rows->at(i, BatchColumn::kBytes);
    clock_.told(
        static_cast<std::int64_t>(integer_at<std::uint64_t>(*rows, i, BatchColumn::kNowMs)));
  }
  return ports::LogPart{std::move(found), all};
}

Result<ports::LogPart> PostgresLog::read_behind(const ports::LogTip& tip) {
  Values values;
  values.number(tip.at.segment).number(tip.at.offset);
  HAPAX_TRY(ports::LogPart found, batches("behind", values));
  std::vector<ports::LogBatch>& list = found.batches;
  if (!tip.none) {
    if (list.empty() || list.front().at != tip.at || list.front().mark != tip.mark) {
      return Error{
          Errc::kNotFound,
          base::format("the batch in segment {} at offset {} is no longer the one that was there",
                       tip.at.segment, tip.at.offset)};
    }
    list.erase(list.begin());
  }
  for (const ports::LogBatch& batch : list) recent_.add(batch);
  return found;
}

Result<ports::LogPart> PostgresLog::read_from(std::uint64_t lsn) {
  recent_.clear();
  Values values;
  values.number(static_cast<std::int64_t>(lsn));
  return batches("from", values);
}

}  // namespace hapax::shared_postgres
