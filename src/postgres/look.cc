#include "postgres/look.h"

#include "tables/migration.h"

namespace hapax::postgres {

std::optional<Rows> Look::ask(std::string_view check, std::string_view sql) {
  auto rows = connection_.run(
      "BEGIN READ ONLY; SET LOCAL statement_timeout = '3s'; "
      "SET LOCAL lock_timeout = '1s'; SET LOCAL search_path = pg_catalog, pg_temp");
  if (rows) rows = connection_.run(named(sql));
  const std::string state = connection_.sqlstate();
  if (connection_.in_transaction()) {
    ignore(connection_.run("ROLLBACK"), "nothing was changed");
  }
  if (!rows) {
    const bool slow = state == "57014";
    findings_.warn(std::string(check), "could not be looked at: " + rows.error().detail,
                   slow ? "ask again when the server is less busy"
                        : "give this role what is named there, or ask as another role");
    return {};
  }
  return *std::move(rows);
}

std::string Look::named(std::string_view sql) const {
  return tables::expanded(sql, "schema", schema_);
}

}  // namespace hapax::postgres
