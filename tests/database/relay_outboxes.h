// Outboxes of both databases, for tests that hold for both.
#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "../postgres/cluster.h"
#include "host/temporary_folder_test.h"
#include "postgres/migrate.h"
#include "postgres/outbox_source.h"
#include "sqlite/migrate.h"
#include "sqlite/outbox_source.h"

namespace hapax::testing_relay {

// One database, as an application and whoever looks after it see it.
class OutboxOfADatabase {
 public:
  virtual ~OutboxOfADatabase() = default;
  virtual std::unique_ptr<relay::Source> open(const std::string& owner) = 0;
  virtual void publish(const std::string& id, const std::string& key) = 0;
  virtual void remove(const std::string& id) = 0;
  // As if the leases of whoever died were over, and all retries due.
  virtual void let_time_pass() = 0;
};

class PostgresOutbox final : public OutboxOfADatabase {
 public:
  PostgresOutbox() { EXPECT_TRUE(postgres::migrate(app_, {}).has_value()); }
  std::unique_ptr<relay::Source> open(const std::string& owner) override {
    return *postgres::OutboxSource::open({.uri = uri_, .owner = owner, .listen = false});
  }
  void publish(const std::string& id, const std::string& key) override {
    run("SELECT hapax.publish('t', 'x', '" + key + "', '" + id + "')");
  }
  void remove(const std::string& id) override {
    run("DELETE FROM hapax.outbox WHERE id = '" + id + "'");
  }
  void let_time_pass() override {
    run("UPDATE hapax.outbox_lane SET lease_until = '-infinity'; DELETE FROM hapax.outbox_relay; "
        "UPDATE hapax.outbox_retry SET next_at = now() WHERE next_at > now()");
  }

 private:
  void run(const std::string& sql) { ASSERT_TRUE(app_.run(sql).has_value()) << sql; }

  std::string uri_ = testing_postgres::Cluster::instance().make_database();
  postgres::Connection app_ = *postgres::Connection::open(uri_);
};

class SqliteOutbox final : public OutboxOfADatabase {
 public:
  SqliteOutbox() {
    EXPECT_TRUE(sqlite::migrate(app_, {}).has_value());
    run("PRAGMA synchronous = OFF");  // Power stays on here.
  }
  std::unique_ptr<relay::Source> open(const std::string& owner) override {
    return *sqlite::OutboxSource::open({.path = path_, .owner = owner});
  }
  void publish(const std::string& id, const std::string& key) override {
    run("INSERT INTO hapax_outbox (id, type, key, payload) VALUES ('" + id + "', 't', '" + key +
        "', 'x')");
  }
  void remove(const std::string& id) override {
    run("DELETE FROM hapax_outbox WHERE id = '" + id + "'");
  }
  void let_time_pass() override {
    run("UPDATE hapax_outbox_lane SET lease_until = 0");
    run("UPDATE hapax_outbox_retry SET next_at = 0 WHERE next_at IS NOT NULL");
  }

 private:
  void run(const std::string& sql) { ASSERT_TRUE(app_.run(sql).has_value()) << sql; }

  const host::TemporaryFolder folder_;
  const std::string path_ = folder_.text() + "/app.db";
  sqlite::Connection app_ = *sqlite::Connection::open(path_);
};

inline std::unique_ptr<OutboxOfADatabase> outbox_of(const std::string& database) {
  if (database == "Postgres") return std::make_unique<PostgresOutbox>();
  return std::make_unique<SqliteOutbox>();
}

}  // namespace hapax::testing_relay
