// The application's own database, lent to Hapax: what Outbox, Inbox and JobClaims stand on. Made by
// on_postgres() or on_sqlite() from the application's connection, which it borrows and never
// closes. Used by one thread at a time, as the connection is.
#pragma once

#include <functional>
#include <memory>

#include <hapax/result.h>

namespace hapax {

namespace tables {
class Tables;
}

class Database {
 public:
  explicit Database(std::unique_ptr<tables::Tables> tables);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Whether the application's connection has a transaction open.
  [[nodiscard]] bool in_transaction() const;

  // Runs `work` in a transaction of its own; if one is open already, in a savepoint of it. An error
  // or an exception of `work` undoes exactly what it did and is handed on. Errors of its own:
  // HX1023: another transaction stood in the way, nothing was stored, run it again;
  // HX1011: the connection was lost at COMMIT, look before you run it again.
  [[nodiscard]] Status with_transaction(const std::function<Status()>& work);

 private:
  friend class Outbox;
  friend class Inbox;
  friend class JobClaims;

  Status in_own_transaction(const std::function<Status()>& work);
  Status in_savepoint(const std::function<Status()>& work);

  std::unique_ptr<tables::Tables> tables_;
};

}  // namespace hapax
