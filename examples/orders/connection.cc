#include "connection.h"

#include <cstdlib>

#include <libpq-fe.h>
#include <sqlite3.h>

#include <hapax/postgres.h>
#include <hapax/sqlite.h>

namespace {

class SqliteConnection : public Connection {
 public:
  ~SqliteConnection() override {
    database_.reset();
    sqlite3_close(connection_);
  }

  hapax::Status open(const std::string& file) {
    if (sqlite3_open_v2(file.c_str(), &connection_, SQLITE_OPEN_READWRITE, nullptr) != SQLITE_OK) {
      return failure();
    }
    HAPAX_TRY(database_, hapax::on_sqlite(connection_));
    return hapax::Ok{};
  }

  hapax::Result<int> execute(const std::string& sql,
                             const std::vector<std::string>& values) override {
    sqlite3_stmt* prepared = nullptr;
    if (sqlite3_prepare_v2(connection_, sql.c_str(), -1, &prepared, nullptr) != SQLITE_OK) {
      return failure();
    }
    const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(prepared,
                                                                               sqlite3_finalize);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string name = "$" + std::to_string(i + 1);
      sqlite3_bind_text(prepared, sqlite3_bind_parameter_index(prepared, name.c_str()),
                        values[i].data(), static_cast<int>(values[i].size()), SQLITE_TRANSIENT);
    }
    if (sqlite3_step(prepared) != SQLITE_DONE) return failure();
    return sqlite3_changes(connection_);
  }

 private:
  [[nodiscard]] hapax::Error failure() const {
    const bool busy = sqlite3_errcode(connection_) == SQLITE_BUSY;
    return {busy ? hapax::Errc::kLocked : hapax::Errc::kInvalidArgument,
            sqlite3_errmsg(connection_)};
  }

  sqlite3* connection_ = nullptr;
};

class PostgresConnection : public Connection {
 public:
  ~PostgresConnection() override {
    database_.reset();
    PQfinish(connection_);
  }

  hapax::Status open(const std::string& address) {
    connection_ = PQconnectdb(address.c_str());
    if (PQstatus(connection_) != CONNECTION_OK) return failure();
    HAPAX_TRY(database_, hapax::on_postgres(connection_));
    return hapax::Ok{};
  }

  hapax::Result<int> execute(const std::string& sql,
                             const std::vector<std::string>& values) override {
    std::vector<const char*> texts;
    for (const std::string& value : values) texts.push_back(value.c_str());
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(
        PQexecParams(connection_, sql.c_str(), static_cast<int>(texts.size()), nullptr,
                     texts.data(), nullptr, nullptr, 0),
        PQclear);
    if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) return failure();
    return std::atoi(PQcmdTuples(result.get()));
  }

 private:
  [[nodiscard]] hapax::Error failure() const {
    const bool lost = PQstatus(connection_) != CONNECTION_OK;
    return {lost ? hapax::Errc::kUnavailable : hapax::Errc::kInvalidArgument,
            PQerrorMessage(connection_)};
  }

  PGconn* connection_ = nullptr;
};

template <class Kind>
hapax::Result<std::unique_ptr<Connection>> opened(const std::string& where) {
  auto connection = std::make_unique<Kind>();
  HAPAX_CHECK(connection->open(where));
  return std::unique_ptr<Connection>(std::move(connection));
}

}  // namespace

hapax::Result<std::unique_ptr<Connection>> open_connection(const std::string& where) {
  constexpr std::string_view kSqlite = "sqlite:";
  if (where.starts_with(kSqlite)) return opened<SqliteConnection>(where.substr(kSqlite.size()));
  return opened<PostgresConnection>(where);
}
