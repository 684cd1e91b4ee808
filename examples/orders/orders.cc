// An order service and a warehouse, each with a database of its own, SQLite or PostgreSQL. Every
// process may be killed at any instant and started again: every order is taken from the stock once.
//
//   hapax migrate sqlite:shop.db && hapax migrate sqlite:warehouse.db
//   hapax stream create orders --data between
//   orders tables sqlite:shop.db && orders tables sqlite:warehouse.db
//   orders place 100 sqlite:shop.db                     the order and its event: one transaction
//   hapax relay --from sqlite:shop.db --to between/streams/orders --once
//   orders receive between sqlite:warehouse.db          the event's id and its effect: one
//   transaction
//
// A data folder belongs to one process at a time, so relay and receiver take turns here. With
// `hapax serve` between them they would run side by side; what is promised is the same.
// Exit code 75: nothing is wrong but the moment; run it again.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include <hapax/embedded.h>
#include <hapax/inbox.h>
#include <hapax/outbox.h>

#include "connection.h"

namespace {

struct Order {
  std::string id;
  std::string item;
  std::string quantity;
};

Order order_of(int number) {
  static constexpr std::array kItems = {"tea", "rice", "salt"};
  return {.id = "o-" + std::to_string(number),
          .item = kItems.at(static_cast<std::size_t>(number) % kItems.size()),
          .quantity = std::to_string(1 + number % 4)};
}

hapax::Status make_tables(Connection& connection) {
  for (const char* sql :
       {"CREATE TABLE orders (id TEXT PRIMARY KEY, item TEXT, quantity INTEGER)",
        "CREATE TABLE taken (order_id TEXT, item TEXT, quantity INTEGER)",
        "CREATE TABLE stock (item TEXT PRIMARY KEY, quantity INTEGER)",
        "INSERT INTO stock VALUES ('tea', 1000000), ('rice', 1000000), ('salt', 1000000)"}) {
    HAPAX_CHECK(connection.execute(sql, {}));
  }
  return hapax::Ok{};
}

// --- the shop --------------------------------------------------------------------------------

// The order and its event are stored both or neither; those of an earlier run are left alone.
hapax::Status place(Connection& shop, const Order& order) {
  hapax::Outbox outbox(shop.database());
  return shop.database().with_transaction([&]() -> hapax::Status {
    HAPAX_TRY(const int rows,
              shop.execute("INSERT INTO orders VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                           {order.id, order.item, order.quantity}));
    if (rows == 0) return hapax::Ok{};
    HAPAX_CHECK(outbox.publish({
        .id = "placed/" + order.id,
        .type = "order.placed",
        .key = order.id,
        .payload = order.id + " " + order.item + " " + order.quantity,
        .headers = {},
        .correlation_id = {},
        .causation_id = {},
    }));
    return hapax::Ok{};
  });
}

hapax::Status place_all(Connection& shop, int count) {
  for (int number = 1; number <= count; ++number) HAPAX_CHECK(place(shop, order_of(number)));
  std::printf("%d orders are placed\n", count);
  return hapax::Ok{};
}

// --- the warehouse ---------------------------------------------------------------------------

hapax::Result<hapax::Handled> take_from_stock(Connection& warehouse, const hapax::Record& record) {
  hapax::Inbox inbox(warehouse.database());
  const hapax::Message message{.id = record.id, .content = record.payload};
  return inbox.handle("stock", message, [&]() -> hapax::Result<std::string> {
    Order order;
    std::istringstream(record.payload) >> order.id >> order.item >> order.quantity;
    HAPAX_CHECK(warehouse.execute("INSERT INTO taken VALUES ($1, $2, $3)",
                                  {order.id, order.item, order.quantity}));
    HAPAX_CHECK(warehouse.execute("UPDATE stock SET quantity = quantity - $1 WHERE item = $2",
                                  {order.quantity, order.item}));
    return std::string("taken");
  });
}

hapax::Result<hapax::Verdict> commit_one(hapax::Store& store, const hapax::Op& op) {
  HAPAX_TRY(hapax::Answer answer, store.commit({.ops = {&op, 1}}));
  return std::move(answer.verdicts.front());
}

// First the effect, then the ack: killed between them, the record comes again, and the inbox knows
// it. The other way round it would be lost. An error ends the run without an ack: the record comes
// again when its lease is over, and after ten attempts it is a dead letter of the stream.
hapax::Status receive_all(hapax::Store& store, Connection& warehouse) {
  int fresh = 0;
  int known = 0;
  while (true) {
    const hapax::Receive receive{.stream = "orders",
                                 .consumer = "warehouse",
                                 .max = 20,
                                 .lease = std::chrono::seconds{2},
                                 .owner = "orders"};
    HAPAX_TRY(const hapax::Verdict verdict, commit_one(store, receive));
    const auto* received = std::get_if<hapax::Received>(&verdict);
    if (received == nullptr) {
      return hapax::Error{hapax::Errc::kPreconditionFailed, std::string(word_of(verdict))};
    }
    if (received->deliveries.empty()) break;
    for (const hapax::Delivery& delivery : received->deliveries) {
      const hapax::Record& record = delivery.record;
      HAPAX_TRY(const hapax::Handled handled, take_from_stock(warehouse, record));
      if (handled.taking == hapax::Taking::kConflict) {
        return hapax::Error{hapax::Errc::kConflict, record.id + " came with another content"};
      }
      ++(handled.taking == hapax::Taking::kFresh ? fresh : known);
      const hapax::Ack ack{.stream = "orders",
                           .consumer = "warehouse",
                           .receipt = {record.sequence, delivery.token}};
      HAPAX_CHECK(commit_one(store, ack));  // Refused if the lease ran out: it will be known then.
    }
  }
  std::printf("%d orders were taken from the stock, %d were known already\n", fresh, known);
  return hapax::Ok{};
}

hapax::Status receive_from(const std::string& folder, Connection& warehouse) {
  hapax::EmbeddedOptions options;
  options.log = [](const std::string&) {};
  HAPAX_TRY(const auto store, hapax::open_embedded(folder, options));
  return receive_all(*store, warehouse);
}

hapax::Status run(const std::vector<std::string>& words) {
  const std::string command = words.empty() ? "" : words.front();
  if (words.size() != (command == "tables" ? 2U : 3U)) {
    return hapax::Error{hapax::Errc::kInvalidArgument,
                        "orders tables DATABASE | place COUNT DATABASE | receive FOLDER DATABASE"};
  }
  HAPAX_TRY(const auto connection, open_connection(words.back()));
  if (command == "tables") return make_tables(*connection);
  if (command == "place") return place_all(*connection, std::atoi(words[1].c_str()));
  return receive_from(words[1], *connection);
}

}  // namespace

int main(int count, char** words) {
  const hapax::Status done = run({words + 1, words + count});
  if (done) return EXIT_SUCCESS;
  std::fprintf(stderr, "orders: %s\n", done.error().text().c_str());
  const hapax::Retry retry = hapax::retry_of(done.error().code);
  return retry == hapax::Retry::kLater || retry == hapax::Retry::kLook ? 75 : EXIT_FAILURE;
}
