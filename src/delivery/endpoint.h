// One endpoint as the engine sees it: what waits for it, what is under way to it, and when it may
// be sent the next record.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <hapax/time.h>

#include "delivery/breaker.h"
#include "delivery/endpoint_observer.h"
#include "delivery/key_queues.h"
#include "delivery/sink.h"
#include "ports/clock.h"

namespace hapax::delivery {

// What a failure of the endpoint (try later, or no answer) costs the record.
enum class FailureCost : std::uint8_t {
  kAttempt,         // each failure is an attempt
  kOnceOthersPass,  // nothing, unless the endpoint took other records since the last failure
};
enum class OnUnknown : std::uint8_t {
  kRetry,  // again, under the same key: the endpoint recognises a repetition
  kPark,   // somebody must find out first
};
// What becomes of the later records of a key while one waits for another attempt.
enum class KeyOrder : std::uint8_t { kBlock, kPark };

struct EndpointPolicy {
  std::string name{};              // for people; empty: the engine has no other
  std::uint32_t concurrency = 64;  // starts under way
  std::uint32_t rate = 0;          // records a second; 0 = no limit
  std::uint32_t held_max = 0;  // records held for it; beyond that they are deferred; 0 = no limit
  std::uint32_t attempts_max = 10;
  std::function<Duration(std::uint32_t attempt)> retry_after{};  // after that attempt failed
  FailureCost failure_cost = FailureCost::kAttempt;
  OnUnknown on_unknown = OnUnknown::kRetry;
  KeyOrder on_failure = KeyOrder::kBlock;
  // Of one record, when no other record shows how the endpoint is; then they count as attempts.
  std::uint32_t lone_failures_max = 100;
  BreakerSettings breaker{};
  EndpointObserver* observer = nullptr;  // outlives the engine
};

// Records a second, with a tenth of a second's worth at once after a rest.
class RateLimit {
 public:
  explicit RateLimit(std::uint32_t per_second)
      : per_second_(per_second), most_(per_second < 10 ? 1.0 : per_second / 10.0), left_(most_) {}

  [[nodiscard]] bool allows(std::int64_t now_ms);
  void spend(std::size_t count) { left_ -= static_cast<double>(count); }
  [[nodiscard]] std::int64_t next_ms(std::int64_t now_ms) const;

 private:
  double per_second_;  // 0 = no limit
  double most_;
  double left_;
  std::optional<std::int64_t> filled_ms_{};
};

// A record that failed and may be to blame for it. It is remembered over hand-outs.
struct Suspect {
  std::uint32_t failures = 0;       // that cost no attempt
  std::uint32_t lone_failures = 0;  // of an endpoint that answers, while no other key failed
  std::uint64_t signs = 0;          // of the endpoint, when the record failed last
};

// For how long records beyond what may be held for an endpoint stay in the source. It doubles while
// the endpoint takes nothing, so that a long queue of one costs the others little.
struct Deferral {
  static constexpr Duration kFirst{100};
  static constexpr Duration kMost{30'000};

  Duration span{0};
  std::int64_t doubles_at_ms = 0;
};

struct Endpoint {
  static constexpr std::size_t kSuspectsMax = 10'000;

  Endpoint(Sink& endpoint_sink, const EndpointPolicy& endpoint_policy)
      : sink(endpoint_sink),
        policy(endpoint_policy),
        breaker(endpoint_policy.breaker),
        rate(endpoint_policy.rate) {}

  [[nodiscard]] bool may_start(std::int64_t now_ms) {
    return under_way < policy.concurrency && breaker.lets_through(now_ms, under_way) &&
           rate.allows(now_ms);
  }
  // Its places are taken, and as many records wait already. A sink that takes many in one start is
  // never sated: for it a take costs little a record, and a rest would cost much.
  [[nodiscard]] bool sated() const {
    return sink.batch_max() == 1 && under_way >= policy.concurrency &&
           queues.waiting() >= policy.concurrency;
  }
  // Beyond the limit all are forgotten: their next failure costs nothing, which is safe.
  [[nodiscard]] Suspect& suspect(const std::string& id) {
    if (suspects.size() >= kSuspectsMax && !suspects.contains(id)) suspects.clear();
    return suspects[id];
  }
  [[nodiscard]] Duration defer(std::int64_t now_ms);
  void tell_began(const std::vector<const Outgoing*>& records) const;
  void enable();
  void tell_settled(ports::Clock& clock, const Outgoing& record, Settlement::Kind kind,
                    std::string_view reason) const;
  // How sentences about it begin.
  [[nodiscard]] std::string called() const {
    return policy.name.empty() ? "the endpoint" : "endpoint '" + policy.name + "'";
  }
  // When may_start() or a waiting record may change by time alone.
  [[nodiscard]] std::optional<std::int64_t> next_ms(std::int64_t now_ms) const;

  Sink& sink;
  const EndpointPolicy policy;
  KeyQueues queues{};
  Breaker breaker;
  RateLimit rate;
  std::unordered_map<std::string, Suspect> suspects{};  // by id
  Deferral deferral{};
  std::size_t under_way = 0;  // starts
  std::size_t held = 0;       // records, those under way included
  std::uint64_t signs = 0;    // how often it took or judged a record
  bool active = false;        // the engine looks at it
  std::string gone{};         // why nothing is ever sent to it again; empty: it is there
};

}  // namespace hapax::delivery
