// A shop on SQLite: an order and its event are one transaction, and a payment takes effect once,
// however often it is reported. Run `hapax migrate sqlite:shop.db` first.
#include <cstdio>
#include <string>

#include <sqlite3.h>

#include <hapax/inbox.h>
#include <hapax/outbox.h>
#include <hapax/sqlite.h>
#include <hapax/uuid.h>

namespace {

hapax::Status execute(sqlite3* connection, const std::string& sql) {
  if (sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) {
    return hapax::Ok{};
  }
  return hapax::Error{hapax::Errc::kInvalidArgument, sqlite3_errmsg(connection)};
}

// The order and its event are stored both or neither.
hapax::Status place_order(sqlite3* connection, hapax::Database& database, const std::string& id) {
  hapax::Outbox outbox(database);
  return database.with_transaction([&]() -> hapax::Status {
    HAPAX_CHECK(execute(connection, "INSERT INTO orders VALUES ('" + id + "', 'placed')"));
    HAPAX_CHECK(outbox.publish({
        .id = hapax::uuid_of({}, "order.placed/" + id).text(),  // The same if this is run again.
        .type = "order.placed",
        .key = id,
        .payload = "{\"order\":\"" + id + "\"}",
        .headers = {},
        .correlation_id = {},
        .causation_id = {},
    }));
    return hapax::Ok{};
  });
}

// What a payment does, once.
hapax::Result<hapax::Handled> take_payment(sqlite3* connection, hapax::Database& database,
                                           const hapax::Message& message) {
  hapax::Inbox inbox(database);
  return inbox.handle("payments", message, [&]() -> hapax::Result<std::string> {
    HAPAX_CHECK(execute(connection,
                        "UPDATE orders SET state = 'paid' WHERE id = '" + message.content + "'"));
    return std::string("receipt 17");
  });
}

hapax::Status run(sqlite3* connection) {
  HAPAX_TRY(const auto database, hapax::on_sqlite(connection));
  HAPAX_CHECK(execute(connection, "DROP TABLE IF EXISTS orders"));
  HAPAX_CHECK(execute(connection, "CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT)"));
  HAPAX_CHECK(place_order(connection, *database, "o-1"));
  const auto again = place_order(connection, *database, "o-1");
  std::printf("placed again: %s\n", again ? "stored twice" : "refused, and no second event");
  for (int i = 0; i < 2; ++i) {
    HAPAX_TRY(const hapax::Handled handled,
              take_payment(connection, *database, {.id = "p-1", .content = "o-1"}));
    std::printf("payment: %s, %s\n", std::string(word_of(handled.taking)).c_str(),
                handled.outcome.c_str());
  }
  return hapax::Ok{};
}

}  // namespace

int main() {
  sqlite3* connection = nullptr;
  hapax::Status done = hapax::Error{hapax::Errc::kNotFound, "shop.db cannot be opened"};
  if (sqlite3_open("shop.db", &connection) == SQLITE_OK) done = run(connection);
  sqlite3_close(connection);
  if (done) return 0;
  std::fprintf(stderr, "shop: %s\n", done.error().text().c_str());
  return 1;
}
