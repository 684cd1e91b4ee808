// When an endpoint that fails is tried again. Pure: the caller hands in the time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include <hapax/time.h>

#include "delivery/endpoint_settings.h"

namespace hapax::delivery {

struct BreakerSettings {
  Duration pause_first{250};          // doubled while the endpoint fails …
  Duration pause_max{30'000};         // … up to this,
  Duration failing_pause_max{2'000};  // or this, if it answers that it fails
  // One record that fails says little about its endpoint: the breaker opens when records of so many
  // keys failed and none passed. An endpoint that answers may fail over some records only, so it
  // gets more tries.
  std::uint32_t silent_keys = 2;
  std::uint32_t failing_keys = 4;
  std::uint32_t probes = 1;  // starts under way at once that find out whether it is better

  [[nodiscard]] static BreakerSettings of(const BreakerTerms& terms);
};

class Breaker {
 public:
  explicit Breaker(const BreakerSettings& settings) : settings_(settings) {}

  [[nodiscard]] bool closed() const { return pause_ == Duration{0}; }
  // Open, or half-open: then few records at a time find out how the endpoint is.
  [[nodiscard]] bool lets_through(std::int64_t now_ms, std::size_t under_way) const {
    return closed() || (now_ms >= until_ms_ && under_way < settings_.probes);
  }
  // Half-open, with as many under way as may be.
  [[nodiscard]] bool is_probing(std::size_t under_way) const {
    return !closed() && under_way >= settings_.probes;
  }
  [[nodiscard]] std::int64_t until_ms() const { return until_ms_; }
  [[nodiscard]] std::uint64_t opened() const { return opened_; }
  // A record failed, and none passed since.
  [[nodiscard]] bool doubts() const { return !failed_keys_.empty(); }

  void passed();
  struct Failure {
    std::string_view key;   // of the record that failed
    bool answered = false;  // by an endpoint that is there
    Duration asked{0};      // for which the endpoint wants to be left alone
  };
  // Whether the breaker opened, or stays open for longer than before.
  bool failed(std::int64_t now_ms, const Failure& failure);

 private:
  void open(std::int64_t now_ms, const Failure& failure);

  BreakerSettings settings_;
  std::unordered_set<std::string> failed_keys_;  // since a record passed; no more than are counted
  Duration pause_{0};                            // 0 = closed
  std::int64_t until_ms_ = 0;
  std::uint64_t opened_ = 0;
};

}  // namespace hapax::delivery
