// Hapax in the application's SQLite file. Link hapax::sqlite.
#pragma once

#include <memory>
#include <string>

#include <hapax/database.h>
#include <hapax/result.h>
#include <hapax/time.h>

struct sqlite3;

namespace hapax {

struct SqliteOptions {
  std::string prefix = "hapax_";  // of the tables, as given to `hapax migrate`
  Duration patience{5'000};       // how long another writer is waited for; then HX1023
};

// Borrows the connection, which must outlive the Database (it keeps statements). HX1022 with the
// command that helps, if the tables are not there or not as new as this library needs them.
[[nodiscard]] Result<std::unique_ptr<Database>> on_sqlite(sqlite3* connection,
                                                          const SqliteOptions& options = {});

}  // namespace hapax
