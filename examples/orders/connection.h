// The service's own database, SQLite or PostgreSQL: the little that this example needs of either.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <hapax/database.h>
#include <hapax/result.h>

class Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  // Runs one statement with the values of $1, $2 … in it; answers how many rows it changed.
  virtual hapax::Result<int> execute(const std::string& sql,
                                     const std::vector<std::string>& values) = 0;

  // The same connection as outbox and inbox see it: what they do is in the same transaction.
  [[nodiscard]] hapax::Database& database() { return *database_; }

 protected:
  std::unique_ptr<hapax::Database> database_;  // Borrows the connection: to be destroyed before it.
};

// `where` is sqlite:FILE or postgres://…, as for `hapax migrate`, which must have been run on it.
hapax::Result<std::unique_ptr<Connection>> open_connection(const std::string& where);
