// Hapax in the application's PostgreSQL database. Link hapax::postgres.
#pragma once

#include <memory>
#include <string>

#include <hapax/database.h>
#include <hapax/result.h>

struct pg_conn;  // PGconn of libpq

namespace hapax {

struct PostgresOptions {
  std::string schema = "hapax";  // as given to `hapax migrate`
  // Outbox::publish() of one event keeps its statement prepared in the session: a third less work
  // for the server. Not behind a pooler that changes sessions between transactions.
  bool prepared = false;
};

// Borrows the connection, which must outlive the Database. HX1022 with the command that helps, if
// the tables are not there or not as new as this library needs them.
[[nodiscard]] Result<std::unique_ptr<Database>> on_postgres(pg_conn* connection,
                                                            const PostgresOptions& options = {});

}  // namespace hapax
