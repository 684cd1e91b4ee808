// Sends jobs to a server at a fixed rate, whatever the server does, and measures.
//
// Latency counts from the moment at which a job was due, not from when a connection was free for
// it: a server that stalls for a second has made all jobs of that second wait (otherwise the worst
// would be left out of the figures; "coordinated omission").
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include <hapax/result.h>

#include "client/client.h"
#include "load/latencies.h"
#include "load/profile.h"

namespace hapax::load {

struct Plan {
  Profile profile;
  std::uint32_t rate = 1'000;  // jobs a second
  std::uint32_t seconds = 30;
  std::uint32_t connections = 64;
  std::string name;  // of this run: streams and keys begin with it
  client::ClientOptions server;
};

struct LoadOutcome {
  std::map<std::string, Latencies> steps;  // "job" is the whole
  std::map<std::string, std::uint64_t> verdicts;
  std::uint64_t due = 0;
  std::uint64_t unsent = 0;  // due, and no connection came to be free until long after the end
  std::uint64_t failed = 0;  // no answer, or a problem
  std::uint64_t wrong = 0;   // another verdict than there should have been
  std::uint64_t relayed = 0;
  std::string first_failure;
  std::chrono::duration<double> took{0};

  void merge(const LoadOutcome& other);
};

// Makes the streams it needs, and deletes them. The error is of that; what goes wrong meanwhile is
// in the outcome.
[[nodiscard]] Result<LoadOutcome> drive(const Plan& plan);

}  // namespace hapax::load
