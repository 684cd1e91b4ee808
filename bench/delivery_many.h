// Ten thousand endpoints of one workflow, of which a quarter refuse and a quarter never answer: how
// fast the living half gets its records; and what an endpoint and a waiting record cost in memory.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include "base/format.h"
#include "delivery_rig.h"
#include "held_port.h"
#include "measured.h"
#include "nginx.h"
#include "options.h"
#include "table.h"

namespace hapax::bench {

// Endpoints on addresses of their own, some to each address, so that each address has connections
// of its own. Endpoints 0 and 1 of four live; 2 refuses; 3 never answers.
class ManyEndpoints {
 public:
  static constexpr std::size_t kCount = 10'000;
  static constexpr std::size_t kAddresses = 500;

  explicit ManyEndpoints(bool all_live) : all_live_(all_live), nginx_(addresses()) {
    for (const std::string& address : addresses()) {
      refusing_.push_back(std::make_unique<HeldPort>(false, address));
      silent_.push_back(std::make_unique<HeldPort>(true, address));
    }
  }

  [[nodiscard]] static bool lives(std::size_t endpoint) { return endpoint % 4 < 2; }
  [[nodiscard]] std::string url(std::size_t endpoint) const {
    const std::size_t at = endpoint / 4 % kAddresses;
    std::uint16_t port = nginx_.port;
    if (!all_live_ && endpoint % 4 == 2) port = refusing_[at]->number;
    if (!all_live_ && endpoint % 4 == 3) port = silent_[at]->number;
    return base::format("http://{}:{}/{}", addresses()[at], port, endpoint);
  }
  [[nodiscard]] static std::string name(std::size_t endpoint) {
    return base::format("e{}", endpoint);
  }

 private:
  static const std::vector<std::string>& addresses() {
    static const std::vector<std::string> all = [] {
      std::vector<std::string> made;
      for (std::size_t i = 0; i < kAddresses; ++i) {
        made.push_back(base::format("127.0.{}.{}", 1 + i / 250, 1 + i % 250));
      }
      return made;
    }();
    return all;
  }

  const bool all_live_;
  Nginx nginx_;
  std::vector<std::unique_ptr<HeldPort>> refusing_;
  std::vector<std::unique_ptr<HeldPort>> silent_;
};

inline delivery::Workflow workflow_to_many(const ManyEndpoints& many) {
  delivery::Workflow workflow{must(delivery::WorkflowId::parse("orders-out"))};
  workflow.source = delivery::FromStream{"orders"};
  for (std::size_t i = 0; i < ManyEndpoints::kCount; ++i) {
    delivery::HttpTarget target{must(delivery::WebUrl::parse(many.url(i)))};
    target.nature = delivery::NatureIdempotent{};
    workflow.endpoints.push_back({.name = ManyEndpoints::name(i),
                                  .target = std::move(target),
                                  .event_types = {ManyEndpoints::name(i)}});
  }
  return workflow;
}

// Record i is for endpoint i, and so on by turns.
inline void fill_for_many(DeliveryRig& rig, std::uint64_t records, bool living_only) {
  for (std::uint64_t i = 0; i < records;) {
    std::vector<std::string> types;
    for (; i < records && types.size() < 1'000; ++i) {
      const std::size_t endpoint = i % ManyEndpoints::kCount;
      if (!living_only || ManyEndpoints::lives(endpoint)) {
        types.push_back(ManyEndpoints::name(endpoint));
      }
    }
    rig.append_typed("orders", types);
  }
}

// How many records of the living half were delivered.
inline std::uint64_t delivered_to_living(const DeliveryRig& rig) {
  std::uint64_t delivered = 0;
  rig.figures().each([&](const workflows::EndpointFigures& one) {
    const auto number = static_cast<std::size_t>(std::stoul(one.endpoint().substr(1)));
    if (ManyEndpoints::lives(number)) delivered += one.delivered();
  });
  return delivered;
}

struct ManyRun {
  bool all_live = true;
  bool living_only = false;  // the other half gets no records
};

// Records a second that the living half got, of `each` records for each endpoint.
inline double living_per_second(const ManyRun& run, std::uint64_t each) {
  const ManyEndpoints many(run.all_live);
  DeliveryRig rig({"orders"});
  const std::uint64_t count = each * ManyEndpoints::kCount;
  fill_for_many(rig, count, run.living_only);
  rig.start({workflow_to_many(many)});
  const auto begin = Clock::now();
  while (delivered_to_living(rig) < count / 2) {
    if (Clock::now() - begin > std::chrono::minutes{5}) {
      fail(base::format("the living half got {} of {} records in five minutes",
                        delivered_to_living(rig), count / 2));
    }
    pause_ms(200);
  }
  const std::chrono::duration<double> took = Clock::now() - begin;
  rig.stop(Duration{0});
  return static_cast<double>(count / 2) / took.count();
}

inline void bench_many(Table& table, const Options& options) {
  const auto each = static_cast<std::uint64_t>(options.quick ? 8 : 20);
  std::vector<double> healthy;
  std::vector<double> alone;
  std::vector<double> beside;
  for (int round = 0; round < options.rounds; ++round) {
    healthy.push_back(living_per_second({}, each));
    alone.push_back(living_per_second({.living_only = true}, each));
    beside.push_back(living_per_second({.all_live = false}, each));
  }
  table.figure("5,000 of 10,000 endpoints, the others get nothing", median(alone), "records/s");
  table.figure("5,000 of 10,000 endpoints, all live", median(healthy), "records/s");
  table.ratio_at_least("5,000 of 10,000 endpoints, 2,500 refuse, 2,500 hang", median(beside),
                       "records/s", "all live", median(healthy), 0.8);
}

// --- memory

// When it has stopped to shrink: the allocator gives pages back by and by.
inline double resident_bytes() {
  const auto now = [] {
    std::ifstream in("/proc/self/statm");
    double pages = 0;
    in >> pages >> pages;
    return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
  };
  double least = now();
  for (int quiet = 0, seconds = 0; quiet < 3 && seconds < 30; ++quiet, ++seconds) {
    pause_ms(1'000);
    if (now() >= least * 0.995) continue;
    least = now();
    quiet = 0;
  }
  return least;
}

// Of records that wait for an endpoint which never answers, all that the process has for them.
inline double bytes_of_a_waiting_record() {
  constexpr std::uint64_t kRecords = 200'000;
  const HeldPort silent(true);
  DeliveryRig rig({"orders"});
  const double before = resident_bytes();
  rig.fill(kRecords);
  delivery::Workflow workflow{must(delivery::WorkflowId::parse("orders-out"))};
  workflow.source = delivery::FromStream{"orders"};
  const std::string url = base::format("http://127.0.0.1:{}/", silent.number);
  delivery::HttpTarget target{must(delivery::WebUrl::parse(url))};
  workflow.endpoints.push_back({.name = "", .target = std::move(target)});
  rig.start({workflow});
  return (resident_bytes() - before) / static_cast<double>(kRecords);
}

inline void bench_memory(Table& table) {
  table.at_most("a record that waits", bytes_of_a_waiting_record(), "bytes", 1'024);
  const ManyEndpoints many(true);
  DeliveryRig rig({"orders"});
  const double before = resident_bytes();
  rig.start({workflow_to_many(many)});
  const double idle = resident_bytes();
  const auto endpoints = static_cast<double>(ManyEndpoints::kCount);
  table.at_most("an endpoint that was never sent anything", (idle - before) / endpoints / 1'024,
                "KiB", 20);
  fill_for_many(rig, ManyEndpoints::kCount, false);
  while (delivered_to_living(rig) < ManyEndpoints::kCount / 2) pause_ms(10);
  table.at_most("an endpoint that was sent a record",
                (resident_bytes() - before) / endpoints / 1'024, "KiB", 20);
  rig.stop(std::chrono::seconds{5});
}

}  // namespace hapax::bench
