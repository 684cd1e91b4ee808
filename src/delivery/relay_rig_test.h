// What tests of the engine share: a sink that does as it is told, and an engine over an outbox in
// memory and a clock that the test moves.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/inline_relay.h"
#include "relay/memory_source_test.h"
#include "sim/clock.h"

namespace hapax::delivery {

using Ids = std::vector<std::string>;
using relay::MemoryOutbox;
using relay::MemorySource;
using relay::Permit;
using relay::SinkDelivery;

class FakeSink final : public relay::Sink {
 public:
  SinkDelivery deliver(std::span<const Outgoing* const> records, const Permit& permit) override {
    SinkDelivery told;
    for (const Outgoing* record : records) {
      if (before) before(*record);
      if (!permit.good()) return {told.accepted, SinkDelivery::Ending::kOutOfTime, {}};
      if (answers && !answers(*record, permit))
        return {told.accepted, SinkDelivery::Ending::kOutOfTime, "late"};
      if (down) return {told.accepted, SinkDelivery::Ending::kUnavailable, "nobody listens"};
      if (asking.contains(record->id)) {
        return {told.accepted, SinkDelivery::Ending::kUnavailable, "status 429", asked_for};
      }
      const bool fails = failing.contains(record->id) || broken;
      if (fails) return {told.accepted, SinkDelivery::Ending::kFailed, "status 500"};
      if (refused.contains(record->id))
        return {told.accepted, SinkDelivery::Ending::kRefused, "status 422"};
      sent.push_back(record->id);
      ++told.accepted;
    }
    return told;
  }

  Ids sent;
  bool down = false;    // does not answer
  bool broken = false;  // answers that it fails, whatever it is given
  std::set<std::string> failing;
  std::set<std::string> refused;
  std::set<std::string> asking;  // over these it asks to be left alone …
  Duration asked_for{0};         // … for so long
  std::function<void(const Outgoing&)> before;
  std::function<bool(const Outgoing&, const Permit&)> answers;  // before the permit ends
};

class RelayEngine : public testing::Test {
 protected:
  Step go(InlineRelay& relay) {
    auto round = relay.step();
    EXPECT_TRUE(round.has_value());
    return round.has_value() ? *round : Step{};
  }
  // Until nothing is left to do at this instant.
  void drain(InlineRelay& relay) {
    while (go(relay).idle_for == Duration{0}) {
    }
  }

  sim::SimClock clock;
  MemoryOutbox outbox;
  FakeSink sink;
  RelaySettings settings{};
  MemorySource source{outbox, clock, "a"};
  InlineRelay engine{source, sink, clock, settings};
};

}  // namespace hapax::delivery
