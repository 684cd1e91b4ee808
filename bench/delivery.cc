// Workflows from a stream of an embedded store, which syncs, to nginx over HTTP, run as `hapax
// serve` runs them: how many records a second under each guarantee, beside libcurl alone (the
// yardstick `deliver`); how long from the source's commit until the delivery is confirmed durably;
// what endpoints that hang cost the others, one of ten and thousands of ten thousand; memory; and a
// PostgreSQL outbox through `hapax relay`.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../tests/postgres/cluster.h"
#include "base/format.h"
#include "deliver_limit.h"
#include "delivery/workflow_runs.h"
#include "delivery_many.h"
#include "delivery_rig.h"
#include "held_port.h"
#include "measured.h"
#include "nginx.h"
#include "options.h"
#include "relay_rows.h"
#include "table.h"

namespace {

using namespace hapax;
using namespace hapax::bench;
using base::format;
using delivery::Guarantee;

constexpr std::uint32_t kWidth = 64;
constexpr std::string_view kLimit = "limit/deliver";

delivery::Workflow workflow_to(const std::string& url, const std::string& id,
                               const std::string& stream) {
  delivery::HttpTarget target{must(delivery::WebUrl::parse(url))};
  target.nature = delivery::NatureIdempotent{};
  delivery::Workflow workflow{must(delivery::WorkflowId::parse(id))};
  workflow.source = delivery::FromStream{stream};
  workflow.endpoints.push_back({.name = "", .target = std::move(target)});
  return workflow;
}

std::string url_of(std::uint16_t port) { return format("http://127.0.0.1:{}/", port); }

delivery::Workflow wide_workflow(const Nginx& nginx, Guarantee guarantee) {
  delivery::Workflow workflow = workflow_to(url_of(nginx.port), "orders-out", "orders");
  workflow.endpoints.front().concurrency = kWidth;
  workflow.delivery.guarantee = guarantee;
  return workflow;
}

// --- how many a second

struct Line {
  std::string name;
  delivery::Workflow workflow;
  double bar = 0;  // of the yardstick; 0 = reported only
  bool keyed = true;
  std::vector<double> speeds{};
};

// Of a stream that is full, until all of it is confirmed and nothing is under way.
double delivered_per_second(const Line& line, std::uint64_t count) {
  DeliveryRig rig({"orders"});
  rig.maker.keyed = line.keyed;
  rig.fill(count);
  const auto begin = Clock::now();
  rig.start({line.workflow});
  rig.await_drained("orders", line.workflow);
  rig.stop(std::chrono::minutes{1});
  const std::chrono::duration<double> took = Clock::now() - begin;
  return static_cast<double>(count) / took.count();
}

std::vector<Line> lines_of(const Nginx& nginx) {
  std::vector<Line> lines;
  const auto add = [&](std::string name, delivery::Workflow workflow, double bar, bool keyed) {
    if (const auto why = delivery::why_not_run(workflow)) {
      std::printf("left out: %s: it %s\n", name.c_str(), why->c_str());
      return;
    }
    lines.push_back({std::move(name), std::move(workflow), bar, keyed});
  };
  add("idempotent-keys", wide_workflow(nginx, Guarantee::kIdempotentKeys), 0.4, true);
  add("idempotent-keys, records without a key", wide_workflow(nginx, Guarantee::kIdempotentKeys), 0,
      false);
  delivery::Workflow narrow = wide_workflow(nginx, Guarantee::kIdempotentKeys);
  narrow.endpoints.front().concurrency = delivery::kConcurrencyDefault;
  add("idempotent-keys, 8 at a time", std::move(narrow), 0, true);
  add("at-least-once", wide_workflow(nginx, Guarantee::kAtLeastOnce), 0, true);
  add("at-most-once", wide_workflow(nginx, Guarantee::kAtMostOnce), 0, true);
  add("exactly-once", wide_workflow(nginx, Guarantee::kExactlyOnce), 0.3, true);
  delivery::Workflow reshaped = wide_workflow(nginx, Guarantee::kIdempotentKeys);
  reshaped.transform = delivery::TransformSettings{.jq = "{order: .id, total: .amount}"};
  add("idempotent-keys, with jq", std::move(reshaped), 0, true);
  return lines;
}

void bench_throughput(Table& table, const Options& options) {
  const Nginx nginx;
  const auto count = static_cast<std::uint64_t>(options.seconds * 20'000);
  std::vector<Line> lines = lines_of(nginx);
  std::vector<double> limit;
  for (int round = 0; round < options.rounds; ++round) {
    if (const auto speed = deliver_limit(options.limit_dir, url_of(nginx.port), count, kWidth)) {
      limit.push_back(*speed);
    }
    for (Line& line : lines) line.speeds.push_back(delivered_per_second(line, count));
  }
  if (limit.empty()) {
    std::printf("yardstick skipped: no --limit-dir with the program `deliver`\n");
  } else {
    table.figure("yardstick limit/deliver", median(limit), "posts/s");
  }
  for (const Line& line : lines) {
    const std::string name = "from a stream, " + line.name;
    const double speed = median(line.speeds);
    if (limit.empty()) {
      table.figure(name, speed, "records/s");
    } else if (line.bar != 0) {
      table.ratio_at_least(name, speed, "records/s", std::string(kLimit), median(limit), line.bar);
    } else {
      table.add(
          {name, speed, "records/s", std::string(kLimit), speed / median(limit), "", std::nullopt});
    }
  }
}

// --- how long one record takes

// From the source's commit until the ack is durable, of records that come at a pace.
std::vector<std::int64_t> spans_at(const delivery::Workflow& workflow, double per_second,
                                   double seconds) {
  DeliveryRig rig({"orders"});
  Feed feed(rig, static_cast<std::uint64_t>(per_second * seconds));
  rig.start({workflow});
  feed.run_at(per_second);
  rig.await_drained("orders", workflow);
  rig.stop(std::chrono::minutes{1});
  return feed.took_us(rig.streams());
}

// What the same processors take when records are appended as fast as they are delivered.
double fed_per_second(const delivery::Workflow& workflow, std::uint64_t count) {
  DeliveryRig rig({"orders"});
  Feed feed(rig, count);
  rig.start({workflow});
  const auto begin = Clock::now();
  feed.run_ahead(1'000);
  rig.await_drained("orders", workflow);
  const std::chrono::duration<double> took = Clock::now() - begin;
  return static_cast<double>(count) / took.count();
}

void bench_pace(Table& table, const Options& options) {
  const Nginx nginx;
  const auto workflow = wide_workflow(nginx, Guarantee::kIdempotentKeys);
  const auto count = static_cast<std::uint64_t>(options.seconds * 20'000);
  std::vector<double> most;
  std::vector<double> p50;
  std::vector<double> p95;
  for (int round = 0; round < options.rounds; ++round) {
    most.push_back(fed_per_second(workflow, count));
    const auto took = spans_at(workflow, 0.8 * most.back(), options.seconds);
    p50.push_back(quantile_ms(took, 0.5));
    p95.push_back(quantile_ms(took, 0.95));
  }
  table.figure("from a stream that is fed meanwhile", median(most), "records/s");
  table.figure("commit to confirmed, at 80 % of that, p50", median(p50), "ms");
  table.at_most("commit to confirmed, at 80 % of that, p95", median(p95), "ms", 100);
}

void bench_latency(Table& table, const Options& options) {
  const Nginx nginx;
  const auto workflow = workflow_to(url_of(nginx.port), "orders-out", "orders");
  std::vector<double> p50;
  std::vector<double> p99;
  for (int round = 0; round < options.rounds; ++round) {
    const auto took = spans_at(workflow, 500, 2 * options.seconds);
    p50.push_back(quantile_ms(took, 0.5));
    p99.push_back(quantile_ms(took, 0.99));
  }
  table.figure("commit to confirmed, at 500/s, p50", median(p50), "ms");
  table.at_most("commit to confirmed, at 500/s, p99", median(p99), "ms", 20);
}

// --- one of ten hangs

constexpr double kPerSecond = 1'000;  // of all ten

// The p99 of nine workflows that each have an endpoint of their own, beside a tenth.
double p99_of_nine(const Nginx& nginx, const std::string& tenth_url, double seconds) {
  std::vector<std::string> streams;
  for (int i = 0; i < 10; ++i) streams.push_back(format("s{}", i));
  DeliveryRig rig(streams);
  Feed feed(rig, static_cast<std::uint64_t>(kPerSecond * seconds));
  std::vector<delivery::Workflow> workflows;
  for (const std::string& stream : streams) {
    const bool tenth = workflows.size() == 9;
    workflows.push_back(
        workflow_to(tenth ? tenth_url : url_of(nginx.port), stream + "-out", stream));
  }
  rig.start(workflows);
  feed.run_at(kPerSecond);
  for (std::size_t i = 0; i < 9; ++i) rig.await_drained(streams[i], workflows[i]);
  rig.stop(Duration{0});
  streams.pop_back();
  return quantile_ms(feed.took_us(streams), 0.99);
}

void bench_hanging(Table& table, const Options& options) {
  const Nginx nginx;
  const HeldPort silent(true);
  std::vector<double> alone;
  std::vector<double> beside;
  const int rounds = options.quick ? 3 : 7;
  for (int round = 0; round < rounds; ++round) {
    for (const bool hangs : {round % 2 == 0, round % 2 != 0}) {
      const std::string url = url_of(hangs ? silent.number : nginx.port);
      (hangs ? beside : alone).push_back(p99_of_nine(nginx, url, options.seconds));
    }
  }
  table.ratio_at_most("p99 of nine endpoints, a tenth hangs, 1,000/s", median(beside), "ms",
                      "none hangs", median(alone), 1.5);
}

// --- from PostgreSQL

void bench_outbox(Table& table, const Options& options) {
  const Nginx nginx;
  testing_postgres::Cluster& cluster = testing_postgres::Cluster::instance();
  const std::string uri = cluster.make_database();
  output_of(options.hapax + " migrate '" + uri + "'");
  Connection app = must(Connection::open(uri));
  const auto count = static_cast<int>(options.seconds * 10'000);
  std::vector<double> limit;
  std::vector<double> ours;
  for (int round = 0; round < options.rounds; ++round) {
    if (const auto speed = deliver_limit(options.limit_dir, url_of(nginx.port),
                                         static_cast<std::uint64_t>(count), kWidth)) {
      limit.push_back(*speed);
    }
    publish_rows(app, count, format("r{}-", round));
    const auto begin = Clock::now();
    output_of(format("{} relay --once --concurrency {} --from '{}' --to {}", options.hapax, kWidth,
                     uri, url_of(nginx.port)));
    const std::chrono::duration<double> took = Clock::now() - begin;
    ours.push_back(count / took.count());
  }
  const std::string name = "from a PostgreSQL outbox, the whole run of a relay";
  if (limit.empty()) return table.figure(name, median(ours), "rows/s");
  table.ratio_at_least(name, median(ours), "rows/s", std::string(kLimit), median(limit), 0.25);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (!installed("nginx")) fail("no nginx");
  Table table;
  if (options.wants("throughput")) bench_throughput(table, options);
  if (options.wants("pace")) bench_pace(table, options);
  if (options.wants("latency")) bench_latency(table, options);
  if (options.wants("hanging")) bench_hanging(table, options);
  if (options.wants("many")) bench_many(table, options);
  if (options.wants("memory")) bench_memory(table);
  if (options.wants("outbox")) bench_outbox(table, options);
  return finish(table, options);
}
