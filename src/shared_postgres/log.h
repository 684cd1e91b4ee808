// The log of a shared store as a table: one row per batch. What several processes agree on is the
// primary key: of those who append behind the same batch one succeeds.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "host/clock.h"
#include "ports/clock.h"
#include "ports/shared_log.h"
#include "postgres/connection.h"

namespace hapax::shared_postgres {

using postgres::Connection;
using postgres::ConnectOptions;
using postgres::kOnly;
using postgres::Rowed;
using postgres::Rows;
using postgres::Values;

// Wall time as the database tells it, carried on by this machine's steady clock.
class DatabaseClock final : public ports::Clock {
 public:
  [[nodiscard]] std::int64_t wall_ms() override;
  // W1: counts suspend, as the database's clock does.
  [[nodiscard]] std::int64_t steady_ms() override { return host_.steady_ms(); }
  void told(std::int64_t database_ms);

 private:
  host::HostClock host_;
  std::atomic<std::int64_t> ahead_ms_{0};  // of steady time
};

// The batches that were written or read last, so that their records need no question.
class RecentBatches {
 public:
  void add(const ports::LogBatch& batch);
  // What is in the log may be another one by now.
  void clear();
  // Up to `size` bytes at `offset` of the segment, if they lie in a batch that is kept.
  [[nodiscard]] bool read(std::uint32_t segment, std::uint64_t offset, std::size_t size,
                          char* into) const;

 private:
  struct Kept {
    ports::LogPlace at;
    std::string bytes;
  };
  mutable base::Mutex mutex_;
  std::deque<Kept> batches_ HAPAX_GUARDED_BY(mutex_);  // in the order of the log
  std::size_t bytes_ HAPAX_GUARDED_BY(mutex_) = 0;
};

// What the tables say of the store's format. An older program refuses a higher one at its start.
inline constexpr int kStoreVersion = 2;
inline constexpr int kStoreVersionFirst = 1;  // All from here on are understood.

[[nodiscard]] std::string_view tables_sql();  // generated from migrations/store

// J3: a lock that everybody who appends shares, and that who copies has alone.
inline constexpr std::string_view kUseName = "USE";

// Columns in binary are in network order.
template <class Integer, class Column>
[[nodiscard]] Integer integer_at(const Rows& rows, std::size_t row, Column column) {
  Integer value = 0;
  for (const char byte : rows.at(row, column)) {
    value = static_cast<Integer>((value << 8) | static_cast<unsigned char>(byte));
  }
  return value;
}

// Where the tables of a store are.
struct StorePlace {
  std::string uri;
  std::string schema = "hapax_store";
  postgres::Notice notice{};  // is told the warnings of its server
};

// Makes the schema and its tables if they are not there; safe beside others that do the same. The
// place of a batch follows from the size of a segment, so all processes must have the same: who
// makes the tables chooses it, the others are told.
[[nodiscard]] Result<std::uint32_t> make_store_tables(const StorePlace& place,
                                                      std::uint32_t segment_bytes);
// kNotFound: they are not there.
[[nodiscard]] Status check_store_tables(const StorePlace& place);
// L19, for tables: before a batch of the present format is appended they say so. Whether they had
// an older format.
[[nodiscard]] Result<bool> raise_store_version(const StorePlace& place);
// kInvalidArgument: the database may lose what it committed. kUnavailable: it is a standby.
[[nodiscard]] Status check_durable(Connection& connection);
// For a new connection of the store. `lock_timeout`: how long a statement waits for a lock.
inline constexpr std::chrono::milliseconds kNoLockTimeout{0};  // as long as it takes
[[nodiscard]] Status settle_session(Connection& connection, std::chrono::milliseconds lock_timeout);
// "hapax_store".log and the like, quoted.
[[nodiscard]] std::string table_of(const StorePlace& place, std::string_view name);

class PostgresLog final : public ports::SharedLog {
 public:
  PostgresLog(StorePlace place, DatabaseClock& clock, RecentBatches& recent);

  // The connection and its settings; kInvalidArgument if the database may lose what it committed,
  // kUnavailable if the store is being copied, or was moved.
  [[nodiscard]] Status connect();

  Result<Put> append(const ports::LogTip& tip, const ports::LogBatch& batch) override;
  Result<ports::LogPart> read_behind(const ports::LogTip& tip) override;
  Result<ports::LogPart> read_from(std::uint64_t lsn) override;

 private:
  [[nodiscard]] Status ready();
  [[nodiscard]] Status take_part(Connection& connection);
  Result<ports::LogPart> batches(const std::string& statement, const Values& values);

  const StorePlace place_;
  DatabaseClock& clock_;
  RecentBatches& recent_;
  std::optional<Connection> connection_;
};

}  // namespace hapax::shared_postgres
