// The files of a shared store in a database: snapshots and their parts in pieces, and the segments
// of the log, which are read as if they were files. Files are written front to back.
//
// What is written, renamed and removed goes through one connection, which also holds the locks: who
// lost its lock with the connection can write nothing more until it has the lock again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "ports/files.h"
#include "postgres/connection.h"
#include "shared_postgres/log.h"

namespace hapax::shared_postgres {

class PostgresFolder final : public ports::Folder {
 public:
  PostgresFolder(StorePlace place, const RecentBatches& recent);

  Result<std::unique_ptr<ports::File>> open(std::string_view name, ports::OpenMode mode) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status remove(std::string_view name) override;
  Status sync() override { return Ok{}; }  // Each statement is durable when it answers.
  Result<std::vector<std::string>> list() override;
  Result<std::unique_ptr<ports::Lock>> lock(std::string_view name) override;
  [[nodiscard]] std::string describe(std::string_view name) const override;

  // For its files. Reads go through any free connection, and are tried again on another one.
  [[nodiscard]] Result<Rows> read(const std::string& sql, const Values& values, Rowed rowed);
  [[nodiscard]] Result<Rows> write(const std::string& sql, const Values& values);
  [[nodiscard]] Result<bool> wait_for_appends();
  void unlock(std::string_view name);
  [[nodiscard]] std::string table(std::string_view name) const { return table_of(place_, name); }
  [[nodiscard]] const RecentBatches& recent() const { return recent_; }

 private:
  [[nodiscard]] Result<Connection> take();
  void give_back(Connection connection);

  const StorePlace place_;
  const RecentBatches& recent_;
  base::Mutex free_mutex_;
  std::vector<Connection> free_ HAPAX_GUARDED_BY(free_mutex_);  // for reading
  base::Mutex writer_mutex_;
  std::optional<Connection> writer_ HAPAX_GUARDED_BY(writer_mutex_);
};

}  // namespace hapax::shared_postgres
