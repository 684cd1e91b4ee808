// Our tables in an SQLite file: which version they have, and how they get newer.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sqlite/connection.h"
#include "tables/migration.h"

namespace hapax::sqlite {

inline constexpr std::string_view kPrefixDefault = "hapax_";

[[nodiscard]] std::span<const tables::Migration> migrations();  // generated
[[nodiscard]] std::string_view migrations_table_sql();          // generated

struct MigrateOptions {
  std::string prefix{kPrefixDefault};
  bool dry_run = false;
  std::span<const tables::Migration> known = migrations();
};

// All pending steps in one transaction, which also keeps other runs away. Sets the file to WAL
// mode, where readers and a writer do not wait for each other.
[[nodiscard]] Result<tables::MigrationReport> migrate(Connection& connection,
                                                      const MigrateOptions& options);

// The SQL of all steps, for people who run it themselves.
[[nodiscard]] std::string script(const MigrateOptions& options);

[[nodiscard]] Status check_version(Connection& connection, const std::string& prefix,
                                   std::uint32_t needs);

// What the table of migrations says; nothing if there is none.
[[nodiscard]] Result<std::vector<tables::Applied>> applied_in(Connection& connection,
                                                              const std::string& prefix);

}  // namespace hapax::sqlite
