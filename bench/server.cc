// `hapax serve` beside the servers people use today, each on loopback with a client of its own
// kind. Ours syncs before it answers, in every row. See docs/benchmarks.md.
#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "clients.h"
#include "nginx.h"
#include "served.h"
#include "table.h"
#include "tenants.h"

namespace {

namespace fs = std::filesystem;
using namespace hapax::bench;

// --- servers

// One program of the package redis-tools is the server, too, when it is called so: the package of
// that name would also start a service.
struct Redis {
  Folder folder;
  std::uint16_t port = free_port();
  Running server;

  explicit Redis(const std::string& fsync)
      : server({"bash", "-c", "exec -a redis-server redis-check-rdb \"$@\"", "redis-server",
                "--port", std::to_string(port), "--bind", "127.0.0.1", "--save", "", "--appendonly",
                "yes", "--appendfsync", fsync, "--dir", folder.path()},
               port) {}
};

// A program of forty lines that does the least that such a server can: one thread, one sync for all
// that was read in a turn.
struct Yardstick {
  Folder folder;
  std::uint16_t port = free_port();
  Running server;

  explicit Yardstick(const fs::path& program)
      : server({"bash", "-c", "cd \"$0\" && exec \"$@\"", folder.path(),
                fs::absolute(program).string(), std::to_string(port), "1"},
               port) {}
};

enum class NatsSync { kLater, kAlways };  // its own interval of two minutes, or each message

std::string nats_config(const Folder& folder, std::uint16_t port, NatsSync sync) {
  std::string path = folder.path("nats.conf");
  std::ofstream(path) << "host: 127.0.0.1\nport: " << port << "\njetstream { store_dir: \""
                      << folder.path("js") << "\""
                      << (sync == NatsSync::kAlways ? ", sync_interval: always" : "") << " }\n";
  return path;
}

struct Nats {
  Folder folder;
  std::uint16_t port = free_port();
  Running server;

  Nats(const std::string& program, NatsSync sync)
      : server({program, "-c", nats_config(folder, port, sync)}, port) {}
};

// --- claims: SET key value NX EX

double set_nx_per_second(std::uint16_t port, int depth, double seconds) {
  const auto wanted = static_cast<std::uint64_t>(seconds * (depth == 1 ? 50'000 : 300'000));
  const std::string text =
      output_of("redis-benchmark -h 127.0.0.1 -p " + std::to_string(port) + " -c 50 -P " +
                std::to_string(depth) + " -n " + std::to_string(wanted) +
                " -r 1000000000 --csv SET dedup:q:__rand_int__ processing NX EX 3600");
  // "test","rps",…; the second line has the figures in quotes.
  const std::size_t line = text.find('\n');
  const std::size_t comma = text.find("\",\"", line);
  if (comma == std::string::npos) fail("redis-benchmark answered '" + text + "'");
  return std::strtod(text.c_str() + comma + 3, nullptr);
}

void bench_claims(Table& table, const Options& options) {
  if (!installed("redis-check-rdb") || !installed("redis-benchmark")) {
    std::printf("SET NX EX skipped: no redis-tools\n");
    return;
  }
  const fs::path yardstick = fs::path(options.limit_dir) / "resp";
  const bool measures = !options.limit_dir.empty() && fs::exists(yardstick);
  if (!measures) std::printf("yardstick skipped: no --limit-dir with the program `resp`\n");
  for (const int depth : {1, 100}) {
    std::vector<double> ours;
    std::vector<double> everysec;
    std::vector<double> always;
    std::vector<double> limit;
    for (int round = 0; round < options.rounds; ++round) {
      ours.push_back(set_nx_per_second(Hapax(options).resp, depth, options.seconds));
      everysec.push_back(set_nx_per_second(Redis("everysec").port, depth, options.seconds));
      if (depth == 1) {
        always.push_back(set_nx_per_second(Redis("always").port, depth, options.seconds));
      }
      if (measures) {
        limit.push_back(set_nx_per_second(Yardstick(yardstick).port, depth, options.seconds));
      }
    }
    const std::string name = "SET NX EX, 50 connections, pipeline " + std::to_string(depth);
    table.ratio_at_least(name, median(ours), "/s", "Redis everysec", median(everysec),
                         depth == 1 ? 1.0 : 2.5);
    if (depth == 1) {
      table.ratio_at_least(name, median(ours), "/s", "Redis always", median(always), 1.4);
    }
    if (measures) {
      table.add({"yardstick limit/resp, pipeline " + std::to_string(depth), median(limit), "/s",
                 "Redis everysec", median(limit) / median(everysec), "", std::nullopt});
    }
  }
}

// --- appends with a message id, 1,000 under way

double hapax_appends_per_second(const Options& options) {
  const Hapax hapax(options);
  Wire wire(hapax.resp);
  wire.send(resp({"HX.CREATE_STREAM", "s"}));
  wire.receive();
  const Stamped append([](const std::string& id) {
    return resp({"HX.APPEND", "s", kPayload, "ID", id});
  });
  // Each answer is a map with one "verdict" in it.
  return pipeline(wire, 1'000, options.seconds, append, Marks("verdict\r\n"));
}

double nats_publishes_per_second(const Nats& nats, double seconds) {
  Wire wire(nats.port);
  wire.send("CONNECT {\"verbose\":false,\"headers\":true}\r\nSUB in.* 1\r\n");
  const std::string stream =
      R"({"name":"s","subjects":["s"],"storage":"file","duplicate_window":120000000000})";
  wire.send("PUB $JS.API.STREAM.CREATE.s in.made " + std::to_string(stream.size()) + "\r\n" +
            stream + "\r\n");
  for (std::string seen; seen.find("in.made") == std::string::npos;) seen += wire.receive();
  const Stamped publish([](const std::string& id) {
    const std::string header = "NATS/1.0\r\nNats-Msg-Id: " + id + "\r\n\r\n";
    return "HPUB s in.a " + std::to_string(header.size()) + " " +
           std::to_string(header.size() + kPayload.size()) + "\r\n" + header + kPayload + "\r\n";
  });
  return pipeline(wire, 1'000, seconds, publish, Marks("\"seq\":"));
}

void bench_appends(Table& table, const Options& options) {
  const bool peer = installed("nats-server");
  if (!peer) std::printf("NATS skipped: no nats-server\n");
  // Debian's knows no `sync_interval: always`.
  const bool newer = installed(options.newer_nats);
  if (!newer) std::printf("NATS with sync_interval: always skipped: no --newer-nats PROGRAM\n");
  std::vector<double> ours;
  std::vector<double> theirs;
  std::vector<double> synced;
  for (int round = 0; round < options.rounds; ++round) {
    ours.push_back(hapax_appends_per_second(options));
    if (peer) {
      theirs.push_back(
          nats_publishes_per_second({"nats-server", NatsSync::kLater}, options.seconds));
    }
    if (newer) {
      synced.push_back(
          nats_publishes_per_second({options.newer_nats, NatsSync::kAlways}, options.seconds));
    }
  }
  const std::string name = "append with id over RESP, 1,000 under way";
  if (!peer && !newer) return table.figure(name, median(ours), "records/s");
  if (peer) {
    table.ratio_at_least(name, median(ours), "records/s", "NATS JetStream, no sync", median(theirs),
                         3.0);
  }
  if (newer) {
    table.ratio_at_least(name, median(ours), "records/s", "NATS sync_interval: always",
                         median(synced), 50.0);
  }
}

// --- batches over HTTP

std::string http_post(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string batch_body(std::uint64_t first) {
  std::string body = "{\"records\":[";
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    body += std::string(i == 0 ? "" : ",") + R"({"id":")" + id_of(first * 1'000 + i) +
            R"(","payload":")" + kPayload + "\"}";
  }
  return body + "]}";
}

// Two connections with two requests under way each.
double batched_appends_per_second(const Options& options) {
  const Hapax hapax(options);
  {
    Wire wire(hapax.http);
    wire.send("PUT /api/v1/streams/s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    wire.receive();
  }
  std::atomic<double> sum = 0;
  std::vector<std::thread> clients;
  for (std::uint64_t c = 0; c < 2; ++c) {
    clients.emplace_back([&, c] {
      Wire wire(hapax.http);
      const auto batch = [c](std::string& out, std::uint64_t i) {
        out += http_post("/api/v1/streams/s/records", batch_body(c * 1'000'000 + i));
      };
      const double batches = pipeline(wire, 2, options.seconds, batch, Marks("HTTP/1.1 200"));
      sum = sum + batches * 1'000;
    });
  }
  for (std::thread& client : clients) client.join();
  return sum;
}

void bench_batches(Table& table, const Options& options) {
  std::vector<double> ours;
  for (int round = 0; round < options.rounds; ++round) {
    ours.push_back(batched_appends_per_second(options));
  }
  table.ratio_at_least("HTTP batch append, 1,000 records a request", median(ours), "records/s",
                       "300,000 records/s", 300'000, 1.0);
}

// --- single claims over HTTP

struct Load {
  double per_second = 0;
  double p99_ms = 0;
};

double milliseconds(const std::string& text) {
  const double number = std::strtod(text.c_str(), nullptr);
  if (text.find("us") != std::string::npos) return number / 1'000;
  return text.find("ms") != std::string::npos ? number : number * 1'000;
}

Load wrk(std::uint16_t port, const std::string& script, double seconds) {
  const std::string text =
      output_of("wrk -t1 -c64 -d" + std::to_string(static_cast<int>(seconds)) + "s --latency -s " +
                script + " http://127.0.0.1:" + std::to_string(port) + "/");
  const std::size_t p99 = text.find("99%");
  const std::size_t rate = text.find("Requests/sec:");
  if (p99 == std::string::npos || rate == std::string::npos) fail("wrk answered '" + text + "'");
  if (text.find("Non-2xx") != std::string::npos) fail("some requests were refused:\n" + text);
  return {std::strtod(text.c_str() + rate + 13, nullptr), milliseconds(text.substr(p99 + 3, 20))};
}

void bench_http_claims(Table& table, const Options& options) {
  if (!installed("wrk") || !installed("nginx")) {
    std::printf("claims over HTTP skipped: no wrk or no nginx\n");
    return;
  }
  const Folder folder;
  const std::string script = folder.path("claim.lua");
  std::ofstream(script) << R"lua(
local n = 0
request = function()
  n = n + 1
  return wrk.format("POST", "/api/v1/claims/orders/" .. n,
                    {["Content-Type"] = "application/json"}, '{"owner":"bench"}')
end
)lua";
  std::vector<double> ours;
  std::vector<double> p99;
  std::vector<double> bare;
  for (int round = 0; round < options.rounds; ++round) {
    const Load load = wrk(Hapax(options).http, script, options.seconds);
    ours.push_back(load.per_second);
    p99.push_back(load.p99_ms);
    bare.push_back(wrk(Nginx().port, script, options.seconds).per_second);
  }
  table.ratio_at_least("single claims over HTTP, 64 connections", median(ours), "claims/s",
                       "nginx return 200", median(bare), 0.25);
  table.at_most("single claims over HTTP, 64 connections, p99", median(p99), "ms", 5);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  Table table;
  if (options.wants("claims")) bench_claims(table, options);
  if (options.wants("appends")) bench_appends(table, options);
  if (options.wants("batches")) bench_batches(table, options);
  if (options.wants("http")) bench_http_claims(table, options);
  if (options.wants("tenants")) bench_tenants(table, options);
  if (options.wants("tenants") && installed("redis-check-rdb")) {
    bench_pace(table, Redis("everysec").port, options);
  }
  return finish(table, options);
}
