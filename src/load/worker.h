// One connection that does jobs, one after the other. For one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "client/client.h"
#include "load/drive.h"

namespace hapax::load {

using Steady = std::chrono::steady_clock;

class Worker {
 public:
  Worker(const Plan& plan, std::uint32_t number);

  // Connects, so that no job pays for it.
  [[nodiscard]] Status connect();
  // `number` is the job's own, `due` is when it should have begun.
  void work(std::uint64_t number, Steady::time_point due);

  [[nodiscard]] const LoadOutcome& outcome() const { return outcome_; }

 private:
  [[nodiscard]] std::string claim_path(const std::string& job) const;
  [[nodiscard]] std::string win(const std::string& job);
  void claim(const std::string& job);
  void claim_and_publish(const std::string& job);
  void append(const std::string& job);
  void expire(const std::string& job);

  // Empty if the answer was not what it should be.
  [[nodiscard]] std::string step(const std::string& what, const client::ApiCall& call,
                                 std::string_view expected);
  void fail(std::uint64_t& count, const std::string& why);
  [[nodiscard]] std::uint64_t random();

  const Plan& plan_;
  client::Client client_;
  LoadOutcome outcome_;
  Steady::time_point since_;        // the next step's latency counts from here
  std::vector<std::string> known_;  // ids that were acknowledged
  std::uint64_t state_;             // of random()
};

[[nodiscard]] std::string stream_of(const Plan& plan);
[[nodiscard]] std::string fence_in(std::string_view body);

}  // namespace hapax::load
