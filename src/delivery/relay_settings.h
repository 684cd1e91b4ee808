// How a relay delivers: the engine's settings for an outbox whose application waits for nobody. An
// endpoint that is away costs no attempts.
#pragma once

#include <cstdint>

#include <hapax/time.h>

#include "delivery/endpoint.h"
#include "delivery/engine.h"
#include "delivery/lane_source.h"

namespace hapax::delivery {

struct RelaySettings {
  Duration lease{15'000};
  Duration margin{2'000};     // so long before the end of a lease nothing is sent any more
  Duration lease_again{500};  // after lanes were leased, if one of them was lost
  std::uint32_t batch = 500;
  std::uint32_t attempts_max = 10;
  Duration retry_first{1'000};  // doubled with each attempt of a record …
  Duration retry_max{300'000};  // … up to this
  std::uint32_t concurrency = 1;
  BreakerSettings breaker{};

  // How long a record waits that was refused for so many times.
  [[nodiscard]] Duration retry_after(std::uint32_t attempt) const;
  // From the first attempt to the last, at most, while sink and source answer: all waits, and a
  // lease that has to end if whoever sent it died.
  [[nodiscard]] Duration retry_horizon() const;

  [[nodiscard]] EngineSettings engine() const;
  [[nodiscard]] LaneSettings lanes() const;
  [[nodiscard]] EndpointPolicy policy() const;
};

}  // namespace hapax::delivery
