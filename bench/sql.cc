// The application's database and the shared store, beside the SQL that one would write by hand. A
// PostgreSQL server of its own, in the working folder, so that the disk measured is the one asked
// for.
#include <atomic>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <hapax/hapax.h>
#include <hapax/postgres_store.h>

#include "../tests/postgres/cluster.h"
#include "clients.h"
#include "options.h"
#include "postgres/publish.h"
#include "relay_rows.h"
#include "tables/migration.h"

namespace {

using namespace hapax;
using namespace hapax::bench;

// Calls `work(thread, count)` on so many threads for a while; units per second.
double per_second(int threads, double seconds,
                  const std::function<std::uint64_t(int, std::uint64_t)>& work) {
  std::atomic<std::uint64_t> sum{0};
  std::vector<std::thread> all;
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration<double>(seconds);
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (std::uint64_t i = 0; Clock::now() < end; ++i) sum += work(t, i);
    });
  }
  for (std::thread& one : all) one.join();
  return static_cast<double>(sum) / std::chrono::duration<double>(Clock::now() - start).count();
}

// One of five ids is repeated.
std::string batch_id(int thread, std::uint64_t batch, std::uint64_t i) {
  const std::uint64_t number = batch * 1'000 + (i % 5 == 4 ? i - 1 : i);
  return id_of((static_cast<std::uint64_t>(thread) << 40) | number);
}

const std::string kPayload(100, 'x');

// --- the shared store

double batches_by_hand(const std::string& uri, double seconds) {
  Connection setup = must(Connection::open(uri));
  run(setup, "CREATE TABLE by_hand (id text PRIMARY KEY, seq bigserial, payload bytea NOT NULL)");
  std::vector<Connection> connections;
  for (int t = 0; t < 2; ++t) connections.push_back(must(Connection::open(uri)));
  const std::string payload = "\\x" + std::string(200, '7');
  return per_second(2, seconds, [&](int t, std::uint64_t batch) -> std::uint64_t {
    std::string ids = "{";
    for (std::uint64_t i = 0; i < 1'000; ++i) {
      ids += (i == 0 ? "" : ",") + batch_id(t, batch, i);
    }
    Values values;
    values.text(ids + "}").text(payload);
    const auto done = connections[static_cast<std::size_t>(t)].ask(
        "INSERT INTO by_hand (id, payload) SELECT i, $2::bytea FROM unnest($1::text[]) i "
        "ON CONFLICT DO NOTHING RETURNING id, seq",
        values);
    if (!done) fail(done.error().text());
    return 1'000;
  });
}

double batches_of_store(const std::string& uri, double seconds) {
  const auto store = must(open_postgres(uri));
  const std::vector<Op> make{CreateStream{"s", {}}};
  if (!store->commit({.ops = make})) fail("no stream");
  return per_second(2, seconds, [&](int t, std::uint64_t batch) -> std::uint64_t {
    std::vector<std::string> ids;
    std::vector<Op> ops;
    for (std::uint64_t i = 0; i < 1'000; ++i) ids.push_back(batch_id(t, batch, i));
    for (const std::string& id : ids) {
      ops.emplace_back(Append{.stream = "s", .payload = kPayload, .id = id});
    }
    const auto answer = store->commit({.ops = ops, .mode = Mode::kEach});
    if (!answer) fail(answer.error().text());
    return 1'000;
  });
}

double claims_by_hand(const std::string& uri, int callers, double seconds) {
  Connection setup = must(Connection::open(uri));
  run(setup,
      "CREATE TABLE claims_by_hand (key text PRIMARY KEY, owner text NOT NULL, "
      "until timestamptz NOT NULL)");
  std::vector<Connection> connections;
  for (int t = 0; t < callers; ++t) {
    connections.push_back(must(Connection::open(uri)));
    if (!connections.back().prepare(
            "claim",
            "INSERT INTO claims_by_hand VALUES ($1, $2, clock_timestamp() + interval '30 s') "
            "ON CONFLICT DO NOTHING RETURNING until")) {
      fail("cannot prepare");
    }
  }
  return per_second(callers, seconds, [&](int t, std::uint64_t i) -> std::uint64_t {
    Values values;
    values.text(batch_id(t, i, 0)).text("worker");
    const auto done = connections[static_cast<std::size_t>(t)].ask_prepared("claim", values);
    if (!done) fail(done.error().text());
    return 1;
  });
}

double claims_of_store(const std::string& uri, int callers, double seconds) {
  const auto store = must(open_postgres(uri));
  return per_second(callers, seconds, [&](int t, std::uint64_t i) -> std::uint64_t {
    const std::string key = batch_id(t, i, 0);
    const std::vector<Op> ops{Claim{.scope = "c", .key = key, .owner = "worker"}};
    const auto answer = store->commit({.ops = ops});
    if (!answer) fail(answer.error().text());
    return 1;
  });
}

void bench_store(Table& table, testing_postgres::Cluster& cluster, const Options& options) {
  constexpr int kCallers = 64;
  std::vector<double> ours;
  std::vector<double> hand;
  std::vector<double> our_claims;
  std::vector<double> hand_claims;
  for (int round = 0; round < options.rounds; ++round) {
    hand.push_back(batches_by_hand(cluster.make_database(), options.seconds));
    ours.push_back(batches_of_store(cluster.make_database(), options.seconds));
    hand_claims.push_back(claims_by_hand(cluster.make_database(), kCallers, options.seconds));
    our_claims.push_back(claims_of_store(cluster.make_database(), kCallers, options.seconds));
  }
  table.ratio_at_least("shared store: append + dedup, batches of 1,000, 2 callers", median(ours),
                       "records/s", "INSERT by hand", median(hand), 0.5);
  table.ratio_at_least("shared store: single claims, 64 callers", median(our_claims), "claims/s",
                       "INSERT by hand", median(hand_claims), 0.5);
}

// --- the outbox and the inbox

std::string migrated(testing_postgres::Cluster& cluster, const Options& options) {
  std::string uri = cluster.make_database();
  output_of(options.hapax + " migrate '" + uri + "'");
  Connection connection = must(Connection::open(uri));
  run(connection,
      "CREATE TABLE business (id bigserial PRIMARY KEY, customer text NOT NULL, cents int NOT "
      "NULL);"
      "CREATE TABLE plain (id text PRIMARY KEY, type text NOT NULL, key text, payload bytea NOT "
      "NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp())");
  return uri;
}

// The key is one of many, the id is the application's own.
double pgbench(const std::string& uri, const std::string& second, double seconds) {
  const Folder folder;
  const std::string script = folder.path("script.sql");
  std::ofstream(script)
      << "\\set k random(1, 100000)\n\\set i random(1, 9000000000000000000)\nBEGIN;\n"
      << "INSERT INTO business (customer, cents) VALUES ('c' || :k, 100);\n"
      << second << "\nCOMMIT;\n";
  const std::string text =
      output_of("pgbench -n -M prepared -c 16 -j 1 -T " +
                std::to_string(static_cast<int>(seconds)) + " -f " + script + " '" + uri + "'");
  const std::size_t at = text.find("tps = ");
  if (at == std::string::npos) fail("pgbench answered '" + text + "'");
  return std::strtod(text.c_str() + at + 6, nullptr);
}

// The statement that the library keeps prepared, as a line of pgbench.
std::string prepared_publish(const std::string& payload) {
  std::string line = tables::expanded(postgres::kPublishStatement, "", "hapax");
  const std::pair<std::string, std::string> values[] = {
      {"$1", "'paid'"}, {"$2", payload}, {"$3", ":k"},  {"$4", ":i"},
      {"$5", "NULL"},   {"$6", "NULL"},  {"$7", "NULL"}};
  for (const auto& [mark, value] : values) {
    for (std::size_t at = 0; (at = line.find(mark, at)) != std::string::npos; at += value.size()) {
      line.replace(at, mark.size(), value);
    }
  }
  return line + ";";
}

// Many short turns, and the median of their ratios: a disk that is slow for a while then is so for
// all of a turn, or makes one ratio strange.
void bench_outbox(Table& table, testing_postgres::Cluster& cluster, const Options& options) {
  const std::string payload = "'\\x" + std::string(200, '7') + "'::bytea";
  const std::string lines[] = {
      "INSERT INTO plain (id, type, key, payload) VALUES (:i, 'paid', :k, " + payload + ");",
      prepared_publish(payload), "SELECT hapax.publish('paid', " + payload + ", :k, :i);"};
  constexpr std::size_t kKinds = std::size(lines);
  std::vector<double> rates[kKinds];
  std::vector<double> ratios[kKinds];
  const double seconds = std::min(options.seconds, 2.0);
  for (int round = 0; round < 5 * options.rounds; ++round) {
    const std::string uri = migrated(cluster, options);
    for (std::size_t turn = 0; turn < kKinds; ++turn) {
      const std::size_t kind = (turn + static_cast<std::size_t>(round)) % kKinds;
      rates[kind].push_back(pgbench(uri, lines[kind], seconds));
    }
    for (std::size_t kind = 1; kind < kKinds; ++kind) {
      ratios[kind].push_back(rates[kind].back() / rates[0].back());
    }
  }
  table.ratio_at_least("outbox: business row + event, prepared, 16 clients", median(rates[1]),
                       "tx/s", "a plain second insert", median(rates[1]) / median(ratios[1]), 0.9);
  table.add({"outbox: the same with SELECT hapax.publish()", median(rates[2]), "tx/s",
             "a plain second insert", median(ratios[2]), "", std::nullopt});
}

double accepts(Connection& connection, const std::string& sql, double seconds, int salt) {
  return per_second(1, seconds, [&](int, std::uint64_t batch) -> std::uint64_t {
    std::string ids = "{";
    for (std::uint64_t i = 0; i < 1'000; ++i) {
      ids += (i == 0 ? "" : ",") + batch_id(salt, batch, i);
    }
    Values values;
    values.text(ids + "}");
    if (const auto done = connection.ask(sql, values); !done) fail(done.error().text());
    return 1'000;
  });
}

void bench_inbox(Table& table, testing_postgres::Cluster& cluster, const Options& options) {
  const std::string uri = migrated(cluster, options);
  Connection connection = must(Connection::open(uri));
  run(connection,
      "CREATE TABLE bare (subscriber text, message_id text, received_at timestamptz NOT NULL "
      "DEFAULT clock_timestamp(), PRIMARY KEY (subscriber, message_id))");
  std::vector<double> ours;
  std::vector<double> bare;
  for (int round = 0; round < options.rounds; ++round) {
    bare.push_back(accepts(connection,
                           "INSERT INTO bare (subscriber, message_id) SELECT 's', i FROM "
                           "unnest($1::text[]) i ON CONFLICT DO NOTHING RETURNING message_id",
                           options.seconds, round));
    ours.push_back(accepts(connection, "SELECT * FROM hapax.inbox_accept('s', $1::text[])",
                           options.seconds, round));
  }
  table.ratio_at_least("inbox: accept, batches of 1,000", median(ours), "messages/s",
                       "a bare INSERT", median(bare), 0.8);
}

// --- the relay

void bench_relay(Table& table, testing_postgres::Cluster& cluster, const Options& options) {
  const int wanted = options.quick ? 50'000 : 200'000;
  const std::string count = std::to_string(wanted);
  const std::string uri = migrated(cluster, options);
  Connection connection = must(Connection::open(uri));
  run(connection,
      "CREATE TABLE queue AS SELECT n AS id, decode(repeat('77', 100), 'hex') AS "
      "payload FROM generate_series(1, " +
          count +
          ") n; ALTER TABLE queue ADD PRIMARY "
          "KEY (id); ANALYZE queue");
  const auto drain_from = Clock::now();
  for (bool more = true; more;) {
    const auto rows = must(connection.run(
        "DELETE FROM queue WHERE id IN (SELECT id FROM queue ORDER BY id LIMIT 100 FOR UPDATE SKIP "
        "LOCKED) RETURNING id, payload"));
    more = rows.size() > 0;
  }
  const double bare = wanted / std::chrono::duration<double>(Clock::now() - drain_from).count();
  run(connection,
      "SELECT count(hapax.publish('paid', decode(repeat('77', 100), 'hex'), 'k' || n % "
      "1000, 'e' || n)) FROM generate_series(1, " +
          count + ") n");
  const double ours = relayed(options, uri, wanted);
  table.ratio_at_least("relay: PostgreSQL to a stream, whole run", ours, "rows/s",
                       "a bare drain of 100 at a time", bare, 0.3);
  table.ratio_at_least("relay: the same", ours, "rows/s", "10,000 rows/s", 10'000, 1.0);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  ::setenv("TMPDIR", fs::current_path().c_str(), 1);  // where the server's folder is made
  testing_postgres::Cluster cluster("max_connections = 100\n");
  Table table;
  if (options.wants("store")) bench_store(table, cluster, options);
  if (options.wants("outbox")) bench_outbox(table, cluster, options);
  if (options.wants("inbox")) bench_inbox(table, cluster, options);
  if (options.wants("relay")) bench_relay(table, cluster, options);
  if (options.wants("history")) {
    bench_history(table, options, [&] { return migrated(cluster, options); });
  }
  if (options.wants("latency")) {
    bench_latency(table, options, migrated(cluster, options));
    bench_sqlite_wake(table, options);
  }
  if (options.wants("idle")) {
    bench_idle(table, options, migrated(cluster, options), cluster.uri("postgres"));
  }
  return finish(table, options);
}
