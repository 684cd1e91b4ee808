// What is wrong with a PostgreSQL database that an application keeps an outbox, an inbox or claims
// in, and what to do. Changes nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "postgres/connection.h"
#include "postgres/look.h"
#include "tables/finding.h"
#include "tables/made.h"

namespace hapax::postgres {

struct CheckupOptions {
  std::string uri;
  std::string shown;  // the same without its password, for remedies
  std::string schema = "hapax";
  std::int64_t patience_ms = 300'000;  // how long something may wait or stay open
  bool tables_expected = true;         // false: that there are none is fine
};

// The server: durability, standby, connections, clock, open transactions, NOTIFY.
void check_server(const CheckupOptions& options, Connection& connection, Findings& findings);

// The tables of a schema: version, structure, contents, growth.
void check_tables(const CheckupOptions& options, Connection& connection, Findings& findings);

// What check_tables() asks once the tables are there.
void check_structure(Look& look);
void check_contents(const CheckupOptions& options, Look& look);

// Tables of the schema that a crash of the server empties.
void check_unlogged(Look& look, const std::string& check);

[[nodiscard]] bool has_schema(Connection& connection, const std::string& schema);

// Whether columns and functions are as the migrations made them, and no trigger, rule or policy of
// somebody else stands between. What is missing as a whole is not told here.
[[nodiscard]] bool check_drift(Look& look, std::span<const tables::Made> all);

}  // namespace hapax::postgres
