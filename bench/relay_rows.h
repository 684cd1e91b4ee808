// What `bench sql` measures of relays: how many rows they move, fresh, beside a history and while a
// transaction is open; how long a row is under way; and what they cost while nothing happens.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include <hapax/hapax.h>

#include "../tests/postgres/cluster.h"
#include "base/format.h"
#include "clients.h"
#include "delivery/inline_relay.h"
#include "host/clock.h"
#include "measured.h"
#include "options.h"
#include "postgres/outbox_source.h"
#include "relay/stream_sink.h"
#include "sqlite/migrate.h"
#include "sqlite/outbox_source.h"

namespace hapax::bench {

using postgres::Connection;
using postgres::Values;

inline void run(Connection& connection, const std::string& sql) {
  if (const auto done = connection.run(sql); !done) fail(done.error().text());
}

// --- throughput

// Rows as publish() makes them, many at a time.
inline void publish_rows(Connection& connection, int rows, const std::string& name) {
  run(connection,
      base::format("INSERT INTO hapax.outbox (part, xid, lane, id, type, key, payload) SELECT "
                   "hapax.outbox_part(), pg_current_xact_id(), hapax.outbox_lane('k' || n % 1000, "
                   "'i'), '{}' || n, 'paid', 'k' || n % 1000, decode(repeat('77', 100), 'hex') "
                   "FROM generate_series(1, {}) AS n",
                   name, rows));
}

// Rows per second of a whole `hapax relay --once` into a stream on disk, which then has `rows`.
inline double relayed(const Options& options, const std::string& uri, int rows) {
  const Folder folder;
  output_of(options.hapax + " stream create orders --data " + folder.path("data"));
  const auto from = Clock::now();
  output_of(options.hapax + " relay --once --from '" + uri + "' --to " + folder.path("data") +
            "/streams/orders");
  const double took = std::chrono::duration<double>(Clock::now() - from).count();
  const std::string told =
      output_of(options.hapax + " stream show orders --json --data " + folder.path("data"));
  if (told.find(base::format("\"last\":{},", rows)) == std::string::npos &&
      told.find("\"last\":" + std::to_string(rows) + "}") == std::string::npos) {
    fail(base::format("of {} rows the relay delivered {}", rows, told));
  }
  return rows / took;
}

// What a relay has delivered in the past, in partitions of the past, with the lanes standing behind
// it. Put there at once, because publishing and relaying it would take minutes.
inline void fill_history(Connection& connection, int rows) {
  const std::string count = std::to_string(rows);
  run(connection,
      "INSERT INTO hapax.outbox (part, xid, seq, lane, id, type, key, payload, created_at) SELECT "
      "(hapax.outbox_part() + 2 + n::bigint * 29 / " +
          count +
          ") % 32, pg_current_xact_id(), n, hapax.outbox_lane('k' || n % 1000, 'i'), 'h' || n, " +
          "'paid', 'k' || n % 1000, decode(repeat('77', 100), 'hex'), now() - (30 - n::bigint * "
          "29 " +
          "/ " + count + ") * interval '1 day' FROM generate_series(1, " + count + ") AS n; " +
          "SELECT setval('hapax.outbox_seq', " + count +
          "); INSERT INTO hapax.outbox_progress (lane, fence, pos, pending, since, draining, "
          "late_to, sent, attempts) SELECT l, 0, " +
          count + ", '{}', '{}', '{}', 0, 0, 0 FROM generate_series(0, 15) AS l");
  // What is old was written and looked through by the autovacuum long ago.
  run(connection, "VACUUM ANALYZE hapax.outbox");
  run(connection, "CHECKPOINT");
}

// A transaction that has published, and is open for `seconds` in which a tenth as much is published
// and relayed each second, and then during the run that is measured.
class HeldOpen {
 public:
  HeldOpen(const Options& options, const std::string& uri, int rows)
      : app_(must(Connection::open(uri))), holder_(must(Connection::open(uri))) {
    run(holder_, "BEGIN; SELECT hapax.publish('paid', 'x', 'held', 'held')");
    const auto until = Clock::now() + std::chrono::seconds{options.held};
    for (int i = 0; i == 0 || Clock::now() < until; ++i) {
      const auto next = Clock::now() + std::chrono::seconds{1};
      publish_rows(app_, rows / 10, base::format("w{}-", i));
      relayed(options, uri, rows / 10);
      std::this_thread::sleep_until(std::min(next, until));
    }
  }
  void commit() { run(holder_, "COMMIT"); }
  Connection& app() { return app_; }

 private:
  Connection app_;
  Connection holder_;
};

template <class MakeDatabase>
void bench_history(Table& table, const Options& options, const MakeDatabase& make_database) {
  const int rows = options.quick ? 100'000 : 200'000;
  const int history = options.quick ? 200'000 : 5'000'000;
  const std::string old = make_database();
  Connection old_app = must(Connection::open(old));
  fill_history(old_app, history);
  std::vector<double> fresh;
  std::vector<double> behind;
  std::vector<double> held;
  std::vector<double> late_ms;
  for (int round = 0; round < options.rounds; ++round) {
    const std::string uri = make_database();
    Connection app = must(Connection::open(uri));
    publish_rows(app, rows, "e");
    fresh.push_back(relayed(options, uri, rows));
    publish_rows(old_app, rows, "e");
    behind.push_back(relayed(options, old, rows));
    const std::string other = make_database();
    HeldOpen open(options, other, rows);
    publish_rows(open.app(), rows, "e");
    held.push_back(relayed(options, other, rows));
    open.commit();
    late_ms.push_back(1e3 / relayed(options, other, 1));
  }
  table.ratio_at_least(base::format("relay: with {} delivered rows of history", history),
                       median(behind), "rows/s", "fresh", median(fresh), 0.9);
  table.ratio_at_least(
      base::format("relay: a transaction open for {} s before and during the run", options.held),
      median(held), "rows/s", "fresh", median(fresh), 0.8);
  table.figure("relay: the whole run for its late row, after its commit", median(late_ms), "ms");
}

// --- how long a row is under way

// Remembers when each record was taken; its payload is its number.
class TimedSink final : public relay::Sink {
 public:
  TimedSink(relay::Sink& next, std::size_t records) : at_us(records), next_(next) {}
  relay::SinkDelivery deliver(std::span<const relay::Outgoing* const> records,
                              const relay::Permit& permit) override {
    relay::SinkDelivery told = next_.deliver(records, permit);
    const std::int64_t now = now_us();
    for (std::size_t i = 0; i < told.accepted; ++i) at_us[std::stoul(records[i]->payload)] = now;
    accepted += told.accepted;
    return told;
  }

  std::vector<std::int64_t> at_us;
  std::size_t accepted = 0;

 private:
  relay::Sink& next_;
};

// As `hapax relay` does.
inline void relay_until(relay::Source& source, TimedSink& sink, std::size_t records) {
  host::HostClock clock;
  delivery::InlineRelay engine(source, sink, clock, {});
  while (sink.accepted < records) {
    const auto round = must(engine.step());
    if (round.idle_for > Duration{0}) source.wait(round.idle_for);
  }
  if (!engine.stop()) fail("the relay did not stop");
}

inline void bench_latency(Table& table, const Options& options, const std::string& uri) {
  const std::size_t records = options.quick ? 3'000 : 20'000;
  std::vector<std::int64_t> committed(records);
  const Folder folder;
  const auto store = must(open_embedded(folder.path("data")));
  const std::vector<Op> make{CreateStream{"orders", {}}};
  if (!store->commit({.ops = make})) fail("no stream");
  relay::StoreSink to_stream(*store, "orders");
  TimedSink sink(to_stream, records);
  const auto source = must(postgres::OutboxSource::open({.uri = uri, .owner = "bench"}));
  std::thread publisher([&] {
    Connection app = must(Connection::open(uri));
    if (!app.prepare("publish", "SELECT hapax.publish('paid', $1::bytea, $2::text)")) fail("no");
    const auto start = Clock::now();
    for (std::size_t i = 0; i < records; ++i) {
      std::this_thread::sleep_until(start + std::chrono::milliseconds{i});
      Values values;
      values.text(std::to_string(i)).text("k" + std::to_string(i % 1'000));
      if (const auto done = app.ask_prepared("publish", values); !done) fail(done.error().text());
      committed[i] = now_us();
    }
  });
  relay_until(*source, sink, records);
  publisher.join();
  std::vector<std::int64_t> took(records);
  for (std::size_t i = 0; i < records; ++i) took[i] = std::max(sink.at_us[i] - committed[i], 0L);
  table.at_most("relay: from commit to a stream on disk, 1,000 rows/s, p50", quantile_ms(took, 0.5),
                "ms", 10);
  table.at_most("relay: the same, p99", quantile_ms(took, 0.99), "ms", 50);
}

class Nowhere final : public relay::Sink {
 public:
  relay::SinkDelivery deliver(std::span<const relay::Outgoing* const> records,
                              const relay::Permit&) override {
    return {.accepted = records.size()};
  }
};

// Another process commits now and then; the relay sleeps in between.
inline void bench_sqlite_wake(Table& table, const Options& options) {
  const std::size_t records = options.quick ? 5 : 20;
  const Folder folder;
  const std::string path = folder.path("app.db");
  {
    sqlite::Connection app = must(sqlite::Connection::open(path));
    must(sqlite::migrate(app, {}));
  }
  const auto source = must(sqlite::OutboxSource::open({.path = path, .owner = "bench"}));
  auto* committed =
      static_cast<std::int64_t*>(::mmap(nullptr, records * sizeof(std::int64_t),
                                        PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t child = ::fork();
  if (child == 0) {
    sqlite::Connection app = must(sqlite::Connection::open(path));
    for (std::size_t i = 0; i < records; ++i) {
      pause_ms(400);
      const std::string number = std::to_string(i);
      if (!app.run("INSERT INTO hapax_outbox (id, type, payload) VALUES ('" + number + "', 't', '" +
                   number + "')")) {
        ::_exit(1);
      }
      committed[i] = now_us();
    }
    ::_exit(0);
  }
  Nowhere nowhere;
  TimedSink sink(nowhere, records);
  relay_until(*source, sink, records);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) fail("the other process failed");
  std::int64_t most = 0;
  for (std::size_t i = 0; i < records; ++i) most = std::max(most, sink.at_us[i] - committed[i]);
  ::munmap(committed, records * sizeof(std::int64_t));
  table.at_most("relay: SQLite, from another process's commit to the sink, most",
                static_cast<double>(most) / 1e3, "ms", 50);
}

// --- what it costs while nothing happens

inline double cpu_seconds(std::int64_t process) {
  std::ifstream file(base::format("/proc/{}/stat", process));
  std::string word;
  double ticks = 0;
  for (int i = 1; i <= 15 && file >> word; ++i) {
    if (i >= 14) ticks += std::stod(word);  // utime and stime; the name has no spaces
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

struct Spent {
  std::int64_t transactions = 0;
  double cpu = 0;
};

inline Spent spent_by(Connection& other, const std::string& database, pid_t relay) {
  Spent spent{.transactions = 0, .cpu = cpu_seconds(relay)};
  const auto sessions = must(
      other.run("SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'hapax relay%'"));
  for (std::size_t i = 0; i < sessions.size(); ++i)
    spent.cpu += cpu_seconds(sessions.number(i, hapax::postgres::kOnly));
  spent.transactions = must(other.run("SELECT xact_commit + xact_rollback FROM pg_stat_database "
                                      "WHERE datname = '" +
                                      database + "'"))
                           .number(0, hapax::postgres::kOnly);
  return spent;
}

// Each question of a relay is a transaction of its database; nobody else is in it.
inline void bench_idle(Table& table, const Options& options, const std::string& uri,
                       const std::string& other_uri) {
  const Folder folder;
  output_of(options.hapax + " stream create orders --data " + folder.path("data"));
  const std::string to = folder.path("data") + "/streams/orders";
  const pid_t relay = ::fork();
  if (relay < 0) fail("cannot start a relay");
  if (relay == 0) {
    ::freopen("/dev/null", "w", stderr);
    ::execl(options.hapax.c_str(), options.hapax.c_str(), "relay", "--from", uri.c_str(), "--to",
            to.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  Connection other = must(Connection::open(other_uri));
  const std::string database = must(Connection::open(uri))
                                   .run("SELECT current_database()")
                                   ->at(0, hapax::postgres::kOnly)
                                   .data();
  const std::int64_t span_ms = options.quick ? 10'000 : 30'000;
  pause_ms(12'000);  // until its naps are as long as they get
  const Spent before = spent_by(other, database, relay);
  pause_ms(span_ms);
  const Spent after = spent_by(other, database, relay);
  ::kill(relay, SIGTERM);
  ::waitpid(relay, nullptr, 0);
  const double seconds = static_cast<double>(span_ms) / 1e3;
  table.at_most("relay: idle, questions to PostgreSQL",
                static_cast<double>(after.transactions - before.transactions) / seconds, "/s", 1);
  table.at_most("relay: idle, processor time of it and its sessions",
                100 * (after.cpu - before.cpu) / seconds, "%", 1);
}

}  // namespace hapax::bench
