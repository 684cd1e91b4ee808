// What the migrations make, read from their own text: a list beside it would grow old.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tables/migration.h"

namespace hapax::tables {

struct Column {
  std::string name;
  std::string type;  // as it is written
  std::string sql;   // the whole definition
  bool not_null = false;
  bool has_default = false;
};

struct Made {
  enum class Kind : std::uint8_t { kTable, kIndex, kSequence, kFunction, kTrigger };
  Kind kind = Kind::kTable;
  std::string name;               // without the schema; with {prefix} in it
  std::string sql;                // the statement that makes it, without the semicolon
  std::vector<Column> columns{};  // of a table
  std::string arguments{};        // of a function, as PostgreSQL tells their types: "text, bytea"
  std::string body{};             // of a function
};

// Every CREATE at the beginning of a line, as later migrations have left it.
[[nodiscard]] std::vector<Made> made_by(std::span<const Migration> migrations);

// "a, b" of "PRIMARY KEY (a, b)", or the column that says PRIMARY KEY itself.
[[nodiscard]] std::string primary_key_of(std::string_view table_sql);

// As PostgreSQL tells it: timestamptz is "timestamp with time zone".
[[nodiscard]] std::string full_type(std::string_view type);

}  // namespace hapax::tables
