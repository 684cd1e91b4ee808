// What the migrations make, read from their own text: a list beside it would grow old.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "database/migration.h"

namespace hapax::database {

struct Made {
  enum class Kind : std::uint8_t { kTable, kIndex, kSequence, kFunction };
  Kind kind = Kind::kTable;
  std::string name;  // without the schema; with {prefix} in it
  std::string sql;   // the statement that makes it, without the semicolon
};

// Every CREATE at the beginning of a line.
[[nodiscard]] std::vector<Made> made_by(std::span<const Migration> migrations);

// "a, b" of "PRIMARY KEY (a, b)", or the column that says PRIMARY KEY itself.
[[nodiscard]] std::string primary_key_of(std::string_view table_sql);

}  // namespace hapax::database
