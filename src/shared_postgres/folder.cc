#include "shared_postgres/folder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/mutex.h"
#include "journal/names.h"
#include "postgres/pooling.h"

namespace hapax::shared_postgres {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr std::chrono::milliseconds kReadSilenceMax{10'000};
constexpr std::chrono::milliseconds kWriteSilenceMax{60'000};  // Segments are removed at once.

bool is_segment(std::string_view name) {
  return journal::parse_name(name).kind == journal::FileName::Kind::kSegment;
}

std::uint32_t segment_of(std::string_view name) {
  return static_cast<std::uint32_t>(journal::parse_name(name).number);
}

Error not_here(const std::string& what) {
  return Error{Errc::kIo, what + " is not possible in a database"};
}

// Rows of (at, bytes), the first of which begins at `offset` or before: as much as there is from
// there on without a hole.
std::size_t copy_from(const Rows& rows, std::uint64_t offset, std::span<char> into) {
  enum Column { kAt, kBytes, kColumns };
  std::size_t copied = 0;
  for (std::size_t i = 0; i < rows.size() && copied < into.size(); ++i) {
    const auto at = integer_at<std::uint64_t>(rows, i, kAt);
    const std::string_view bytes = rows.at(i, kBytes);
    const std::uint64_t wanted = offset + copied;
    if (at > wanted || wanted >= at + bytes.size()) break;
    const std::string_view part = bytes.substr(wanted - at, into.size() - copied);
    std::memcpy(into.data() + copied, part.data(), part.size());
    copied += part.size();
  }
  return copied;
}

// Where the last of the pieces ends that have this number in `column`; 0 = there are none.
Result<std::uint64_t> end_of(PostgresFolder& folder, std::string_view table,
                             const std::string& column, std::int64_t number) {
  Values values;
  values.number(number);
  HAPAX_TRY(const Rows rows, folder.read("SELECT at + length(bytes) FROM " + folder.table(table) +
                                             " WHERE " + column + " = $1 ORDER BY at DESC LIMIT 1",
                                         values, Rowed::kText));
  return rows.size() == 0 ? 0 : static_cast<std::uint64_t>(rows.number(0, kOnly));
}

// What all files of the database cannot do.
class DatabaseFile : public ports::File {
 public:
  Result<std::size_t> write_at(std::uint64_t, std::string_view) override {
    return not_here("to write here");
  }
  Status sync() override { return Ok{}; }
  Status truncate(std::uint64_t) override { return not_here("to truncate"); }
  Status reserve(std::uint64_t) override { return Ok{}; }
};

class SegmentFile final : public DatabaseFile {
 public:
  SegmentFile(PostgresFolder& folder, std::uint32_t segment) : folder_(folder), segment_(segment) {}

  // Payloads lie within one batch.
  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) const override {
    if (folder_.recent().read(segment_, offset, into.size(), into.data())) return into.size();
    Values values;
    values.number(segment_).number(static_cast<std::int64_t>(offset));
    values.number(static_cast<std::int64_t>(into.size()));
    // The piece that is wanted, with the place where it begins.
    const std::string sql =
        "SELECT $2::int8 AS at, "
        "substring(bytes FROM ($2::int8 - log.at + 1)::int4 FOR $3::int4) AS bytes FROM " +
        folder_.table("log") +
        " AS log WHERE segment = $1::int4 AND log.at <= $2::int8 ORDER BY log.at DESC LIMIT 1";
    HAPAX_TRY(const Rows rows, folder_.read(sql, values, Rowed::kBinary));
    if (rows.size() == 0) {
      return Error{Errc::kNotFound, base::format("segment {} was removed", segment_)};
    }
    return copy_from(rows, offset, into);
  }

  [[nodiscard]] Result<std::uint64_t> size() const override {
    return end_of(folder_, "log", "segment", segment_);
  }

 private:
  PostgresFolder& folder_;
  const std::uint32_t segment_;
};

class StoredFile final : public DatabaseFile {
 public:
  StoredFile(PostgresFolder& folder, std::int64_t id) : folder_(folder), id_(id) {}

  Result<std::size_t> write_at(std::uint64_t offset, std::string_view bytes) override {
    if (offset != flushed_ + pending_.size()) return not_here("to write elsewhere than at the end");
    pending_ += bytes;
    if (pending_.size() >= kPieceBytes) HAPAX_CHECK(flush());
    return bytes.size();
  }
  Status sync() override { return flush(); }

  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) const override {
    Values values;
    values.number(id_).number(static_cast<std::int64_t>(offset));
    values.number(static_cast<std::int64_t>(offset + into.size()));
    const std::string piece = folder_.table("piece");
    const std::string sql = "SELECT at, bytes FROM " + piece +
                            " WHERE file = $1::int8 AND at < $3::int8 AND at >= "
                            "coalesce((SELECT max(at) FROM " +
                            piece + " WHERE file = $1::int8 AND at <= $2::int8), 0) ORDER BY at";
    HAPAX_TRY(const Rows rows, folder_.read(sql, values, Rowed::kBinary));
    return copy_from(rows, offset, into);
  }

  [[nodiscard]] Result<std::uint64_t> size() const override {
    return end_of(folder_, "piece", "file", id_);
  }

 private:
  Status flush() {
    if (pending_.empty()) return Ok{};
    Values values;
    values.number(id_).number(static_cast<std::int64_t>(flushed_)).bytes(pending_);
    HAPAX_CHECK(folder_.write(
        "INSERT INTO " + folder_.table("piece") + " VALUES ($1::int8, $2::int8, $3::bytea)",
        values));
    flushed_ += pending_.size();
    pending_.clear();
    return Ok{};
  }

  PostgresFolder& folder_;
  const std::int64_t id_;
  std::string pending_;
  std::uint64_t flushed_ = 0;
};

class AdvisoryLock final : public ports::Lock {
 public:
  AdvisoryLock(PostgresFolder& folder, std::string name)
      : folder_(folder), name_(std::move(name)) {}
  ~AdvisoryLock() override { folder_.unlock(name_); }

 private:
  PostgresFolder& folder_;
  const std::string name_;
};

}  // namespace

PostgresFolder::PostgresFolder(StorePlace place, const RecentBatches& recent)
    : place_(std::move(place)), recent_(recent) {}

std::string PostgresFolder::describe(std::string_view name) const {
  return "schema " + place_.schema + (name.empty() ? "" : ", " + std::string(name));
}

// --- connections

namespace {

Error lock_is_lost() {
  return Error{Errc::kUnavailable, "the connection that held the lock of the store is lost"};
}

}  // namespace

Result<Connection> PostgresFolder::take() {
  {
    const base::MutexLock lock(free_mutex_);
    if (!free_.empty()) {
      Connection connection = std::move(free_.back());
      free_.pop_back();
      return connection;
    }
  }
  ConnectOptions options;
  options.notice = place_.notice;
  options.application_name = "hapax store reads";
  options.silence_max = kReadSilenceMax;
  HAPAX_TRY(Connection connection, Connection::open(place_.uri, options));
  HAPAX_CHECK(settle_session(connection, kNoLockTimeout));
  return connection;
}

void PostgresFolder::give_back(Connection connection) {
  constexpr std::size_t kFreeMax = 8;
  const base::MutexLock lock(free_mutex_);
  if (free_.size() < kFreeMax) free_.push_back(std::move(connection));
}

Result<Rows> PostgresFolder::read(const std::string& sql, const Values& values, Rowed rowed) {
  constexpr int kTries = 10;  // More than connections that are kept: all may be lost by now.
  for (int tries = 1;; ++tries) {
    HAPAX_TRY(Connection connection, take());
    auto rows = connection.ask(sql, values, rowed);
    const bool lost = connection.lost();
    if (!lost) give_back(std::move(connection));
    if (rows || !lost || tries == kTries) return rows;
  }
}

Result<Rows> PostgresFolder::write(const std::string& sql, const Values& values) {
  const base::MutexLock lock(writer_mutex_);
  if (!writer_ || writer_->lost()) return lock_is_lost();
  return writer_->ask(sql, values);
}

// --- locks

Result<std::unique_ptr<ports::Lock>> PostgresFolder::lock(std::string_view name) {
  const base::MutexLock lock(writer_mutex_);
  if (!writer_ || writer_->lost()) {
    writer_.reset();
    ConnectOptions options;
    options.notice = place_.notice;
    options.application_name = "hapax store keeper";
    options.silence_max = kWriteSilenceMax;
    HAPAX_TRY(Connection connection, Connection::open(place_.uri, options));
    HAPAX_CHECK(postgres::check_keeps_session(connection, place_.uri, place_.notice));
    HAPAX_CHECK(settle_session(connection, kNoLockTimeout));
    writer_.emplace(std::move(connection));
  }
  Values values;
  values.text(place_.schema).text(name);
  HAPAX_TRY(const Rows rows,
            writer_->ask("SELECT pg_try_advisory_lock(hashtext($1), hashtext($2))", values));
  if (!rows.is_true(0, kOnly)) {
    return Error{Errc::kLocked, "another process holds " + std::string(name)};
  }
  return std::unique_ptr<ports::Lock>(std::make_unique<AdvisoryLock>(*this, std::string(name)));
}

void PostgresFolder::unlock(std::string_view name) {
  Values values;
  values.text(place_.schema).text(name);
  ignore(write("SELECT pg_advisory_unlock(hashtext($1), hashtext($2))", values),
         "a lost connection has let go of it");
}

// --- files

Result<std::unique_ptr<ports::File>> PostgresFolder::open(std::string_view name,
                                                          ports::OpenMode mode) {
  Values values;
  if (is_segment(name)) {
    auto file = std::make_unique<SegmentFile>(*this, segment_of(name));
    HAPAX_TRY(const std::uint64_t size, file->size());
    if (size == 0) return Error{Errc::kNotFound, describe(name) + " is not there"};
    return std::unique_ptr<ports::File>(std::move(file));
  }
  values.text(name);
  const std::string file = table("file");
  const bool create = mode == ports::OpenMode::kCreate;
  HAPAX_TRY(const Rows rows,
            create ? write("INSERT INTO " + file + " (name) VALUES ($1) RETURNING id", values)
                   : read("SELECT id FROM " + file + " WHERE name = $1", values, Rowed::kText));
  if (rows.size() == 0) return Error{Errc::kNotFound, describe(name) + " is not there"};
  return std::unique_ptr<ports::File>(std::make_unique<StoredFile>(*this, rows.number(0, kOnly)));
}

Status PostgresFolder::rename(std::string_view from, std::string_view to) {
  Values both;
  both.text(from).text(to);
  // One statement, so that a lost connection leaves either name; ids do not change.
  HAPAX_TRY(const Rows rows,
            write("WITH old AS (SELECT id FROM " + table("file") +
                      " WHERE name = $2), "
                      "dropped AS (DELETE FROM " +
                      table("piece") +
                      " WHERE file IN (SELECT id FROM old)), "
                      "freed AS (UPDATE " +
                      table("file") +
                      " SET name = name || '.replaced.' || id WHERE id IN (SELECT id FROM old) "
                      "RETURNING id) "
                      "UPDATE " +
                      table("file") +
                      " SET name = $2 WHERE name = $1 AND (SELECT count(*) FROM freed) >= 0",
                  both));
  if (rows.affected() != 1) return Error{Errc::kNotFound, describe(from) + " is not there"};
  HAPAX_CHECK(write(
      "DELETE FROM " + table("file") + " WHERE starts_with(name, $2 || '.replaced.') AND $1 <> ''",
      both));
  return Ok{};
}

// E8: an append has seen that nothing lay behind its tip, and stands still before it takes its
// place. When it goes on, what others put there since must not have been removed. Later ones see
// that the log goes on. Others wait behind this, so it waits for a moment only.
Result<bool> PostgresFolder::wait_for_appends() {
  const base::MutexLock lock(writer_mutex_);
  if (!writer_ || writer_->lost()) return lock_is_lost();
  const auto passed = writer_->run(
      "DO $wait$ BEGIN PERFORM pg_catalog.set_config('lock_timeout', '100ms', true); LOCK TABLE " +
      table("log") + " IN SHARE MODE; END $wait$");
  if (!passed && passed.error().code != Errc::kLocked) return passed.error();
  return passed.ok();
}

Status PostgresFolder::remove(std::string_view name) {
  Values values;
  if (is_segment(name)) {
    HAPAX_TRY(const bool passed, wait_for_appends());
    if (!passed) return Ok{};  // The next snapshot finds it again.
    values.number(segment_of(name));
    // The last batch stays: whoever appends next must find it.
    const std::string log = table("log");
    HAPAX_CHECK(write("DELETE FROM " + log +
                          " WHERE segment = $1::int4 AND segment < "
                          "(SELECT max(segment) FROM " +
                          log + ")",
                      values));
    return Ok{};
  }
  values.text(name);
  HAPAX_TRY(const Rows rows,
            write("WITH gone AS (DELETE FROM " + table("file") +
                      " WHERE name = $1 RETURNING id), pieces AS (DELETE FROM " + table("piece") +
                      " WHERE file IN (SELECT id FROM gone)) SELECT id FROM gone",
                  values));
  if (rows.size() == 0) return Error{Errc::kNotFound, describe(name) + " is not there"};
  return Ok{};
}

Result<std::vector<std::string>> PostgresFolder::list() {
  HAPAX_TRY(const Rows files, read("SELECT name FROM " + table("file"), {}, Rowed::kText));
  // The segments there are, one step of the index each.
  const std::string log = table("log");
  HAPAX_TRY(const Rows segments,
            read("WITH RECURSIVE s AS ((SELECT segment FROM " + log +
                     " ORDER BY segment LIMIT 1) UNION ALL SELECT (SELECT l.segment FROM " + log +
                     " l WHERE l.segment > s.segment ORDER BY l.segment LIMIT 1) FROM s "
                     "WHERE s.segment IS NOT NULL) SELECT segment FROM s WHERE segment IS NOT NULL",
                 {}, Rowed::kText));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < files.size(); ++i) names.emplace_back(files.at(i, kOnly));
  for (std::size_t i = 0; i < segments.size(); ++i) {
    names.push_back(journal::segment_name(static_cast<std::uint32_t>(segments.number(i, kOnly))));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace hapax::shared_postgres
