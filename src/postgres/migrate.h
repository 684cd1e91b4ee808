// Our tables in a schema of a PostgreSQL database: which version they have, and how they get newer.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "postgres/connection.h"
#include "tables/migration.h"

namespace hapax::postgres {

inline constexpr std::string_view kSchemaDefault = "hapax";

[[nodiscard]] std::span<const tables::Migration> migrations();  // generated
[[nodiscard]] std::string_view migrations_table_sql();          // generated
[[nodiscard]] std::string_view retention_sql();                 // generated

struct MigrateOptions {
  std::string schema{kSchemaDefault};
  bool dry_run = false;
  std::optional<std::chrono::seconds> retention;  // of the outbox; none: as it is
  std::chrono::milliseconds patience{60'000};     // for another run; then HX1023
  std::span<const tables::Migration> known = migrations();
};

// The outbox is a ring of partitions, each used for this long at a time.
// O5: from when the youngest row of a partition is older than the retention until the partition is
// used again there is at least one such period, and at least two minutes: a relay looks every
// minute for partitions to empty. One that is used again before it was emptied never grows old.
inline constexpr int kPartitions = 32;
[[nodiscard]] std::chrono::seconds part_period(std::chrono::seconds retention);

// Each step commits together with its line in the table of migrations, so a run that ends midway is
// finished by the next one. An advisory lock of its transaction lets one run at a time do it,
// behind any pooler. No step may wait long for a lock while others wait behind it (lock_timeout);
// it is tried again.
[[nodiscard]] Result<tables::MigrationReport> migrate(Connection& connection,
                                                      const MigrateOptions& options);

// The SQL of all steps, for people who run it themselves.
[[nodiscard]] std::string script(const MigrateOptions& options);

// What a program that uses the tables asks first: HX1022 with the remedy unless they are as this
// program knows them. `needs` = the newest migration that it needs.
[[nodiscard]] Status check_version(Connection& connection, const std::string& schema,
                                   std::uint32_t needs);

// What the table of migrations says; nothing if there is none.
[[nodiscard]] Result<std::vector<tables::Applied>> applied_in(Connection& connection,
                                                              const std::string& schema);

}  // namespace hapax::postgres
