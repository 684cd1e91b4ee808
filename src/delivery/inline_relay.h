// One outbox, one sink that blocks, and an engine between them, on the caller's thread.
#pragma once

#include <utility>

#include "delivery/blocking.h"
#include "delivery/engine.h"
#include "delivery/lane_source.h"
#include "delivery/relay_settings.h"

namespace hapax::delivery {

class InlineRelay {
 public:
  InlineRelay(relay::Source& outbox, relay::Sink& sink, ports::Clock& clock,
              const RelaySettings& settings, Engine::Log log = {})
      : sink_(sink, clock, settings.batch),
        source_(outbox, clock, settings.lanes(), log),
        engine_(source_, clock, settings.engine(), log) {
    engine_.add_endpoint(sink_, settings.policy());
  }

  // As a driver does it: what waits is looked for each time.
  [[nodiscard]] Result<Step> step() {
    source_.expect_news();
    return engine_.step();
  }
  void wind_down() { engine_.wind_down(); }
  [[nodiscard]] Status stop() { return engine_.stop(); }
  [[nodiscard]] const EngineCounts& counts() const { return engine_.counts(); }
  [[nodiscard]] std::size_t lanes() const { return source_.lanes(); }
  [[nodiscard]] std::uint32_t share() const { return source_.share(); }
  [[nodiscard]] std::uint64_t lanes_lost() const { return source_.lanes_lost(); }

 private:
  InlineSink sink_;
  LaneSource source_;
  Engine engine_;
};

}  // namespace hapax::delivery
