// An application with a database of its own, whichever it is: what the suite runs over. A new kind
// of database is one more line in all_kinds().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hapax/inbox.h>
#include <hapax/job_claims.h>
#include <hapax/outbox.h>
#include <hapax/postgres.h>
#include <hapax/sqlite.h>

#include "../postgres/cluster.h"
#include "host/temporary_folder_test.h"
#include "postgres/migrate.h"
#include "sqlite/migrate.h"

namespace hapax::application {

// One process of the application: its connection, and Hapax on it.
class Process {
 public:
  virtual ~Process() = default;
  virtual Status run(const std::string& sql) = 0;
  virtual std::int64_t number(const std::string& sql) = 0;  // of one row and column

  Database& database() { return *database_; }

 protected:
  std::unique_ptr<Database> database_;
};

class OnPostgres final : public Process {
 public:
  explicit OnPostgres(const std::string& uri, const PostgresOptions& options = {})
      : connection_(*postgres::Connection::open(uri)) {
    database_ = *on_postgres(connection_.raw(), options);
  }
  ~OnPostgres() override { database_.reset(); }
  Status run(const std::string& sql) override {
    HAPAX_CHECK(connection_.run(sql));
    return Ok{};
  }
  std::int64_t number(const std::string& sql) override {
    const auto rows = connection_.run(sql);
    EXPECT_TRUE(rows) << rows.error().text();
    return rows ? rows->number(0, postgres::kOnly) : -1;
  }

 private:
  postgres::Connection connection_;
};

class OnSqlite final : public Process {
 public:
  explicit OnSqlite(const std::string& path) : connection_(*sqlite::Connection::open(path)) {
    database_ = *on_sqlite(connection_.raw(), {.patience = Duration{200}});
  }
  ~OnSqlite() override { database_.reset(); }
  Status run(const std::string& sql) override { return connection_.run(sql); }
  std::int64_t number(const std::string& sql) override {
    const auto rows = connection_.ask(sql, {});
    EXPECT_TRUE(rows) << rows.error().text();
    return rows ? rows->at(0)[sqlite::kOnly].number : -1;
  }

 private:
  sqlite::Connection connection_;
};

struct Kind {
  std::string name;
  std::string tables;  // before the name of a table of ours
  std::function<std::string(const std::string& folder)> prepare;  // migrates; answers the address
  std::function<std::unique_ptr<Process>(const std::string& address)> start;
};

inline std::string prepare_postgres(const std::string& /*folder*/) {
  std::string uri = testing_postgres::Cluster::instance().make_database();
  auto connection = *postgres::Connection::open(uri);
  const auto report = postgres::migrate(connection, {});
  EXPECT_TRUE(report) << report.error().text();
  return uri;
}

inline std::string prepare_sqlite(const std::string& folder) {
  std::string path = folder + "/application.db";
  auto connection = *sqlite::Connection::open(path);
  const auto report = sqlite::migrate(connection, {});
  EXPECT_TRUE(report) << report.error().text();
  return path;
}

inline std::vector<Kind> all_kinds() {
  return {{"postgres", "hapax.", prepare_postgres,
           [](const std::string& uri) { return std::make_unique<OnPostgres>(uri); }},
          {"sqlite", "hapax_", prepare_sqlite,
           [](const std::string& path) { return std::make_unique<OnSqlite>(path); }}};
}
// Those by which an event can be stored.
inline std::vector<Kind> outbox_kinds() {
  std::vector<Kind> kinds = all_kinds();
  kinds.push_back({"postgres_prepared", "hapax.", prepare_postgres, [](const std::string& uri) {
                     return std::make_unique<OnPostgres>(uri, PostgresOptions{.prepared = true});
                   }});
  return kinds;
}
inline std::string name_of(const testing::TestParamInfo<Kind>& info) { return info.param.name; }
inline void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class ApplicationTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    address_ = GetParam().prepare(folder_.text());
    app_ = start();
    ASSERT_TRUE(app_->run("CREATE TABLE orders (id TEXT PRIMARY KEY)"));
  }

  std::unique_ptr<Process> start() { return GetParam().start(address_); }
  Database& database() { return app_->database(); }
  [[nodiscard]] std::string table(const std::string& name) const {
    return GetParam().tables + name;
  }
  std::int64_t count(const std::string& table) {
    return app_->number("SELECT count(*) FROM " + table);
  }
  // As if all leases had run out at the beginning of 2020.
  void lapse() {
    const std::string then =
        GetParam().name == "sqlite" ? "1577836800000" : "timestamptz '2020-01-01 00:00:00Z'";
    ASSERT_TRUE(app_->run("UPDATE " + table("claims") + " SET lease_until = " + then));
  }
  Status order(const std::string& id) { return order(*app_, id); }
  static Status order(Process& process, const std::string& id) {
    return process.run("INSERT INTO orders VALUES ('" + id + "')");
  }

  const host::TemporaryFolder folder_;
  std::string address_;
  std::unique_ptr<Process> app_;
};

template <class Wanted>
Wanted as(const Result<Verdict>& verdict) {
  if (!verdict) {
    ADD_FAILURE() << verdict.error().text();
    return {};
  }
  if (const auto* found = std::get_if<Wanted>(&*verdict)) return *found;
  ADD_FAILURE() << "the verdict is " << word_of(*verdict);
  return {};
}

}  // namespace hapax::application
