// What tests of relays over databases share: a receiver in memory, and a relay that looks to the
// database like a process of its own.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/inline_relay.h"
#include "host/clock.h"

namespace hapax::testing_relay {

using Ids = std::vector<std::string>;

class Receiver final : public relay::Sink {
 public:
  relay::SinkDelivery deliver(std::span<const relay::Outgoing* const> records,
                              const relay::Permit& permit) override {
    relay::SinkDelivery told;
    if (away) return {0, relay::SinkDelivery::Ending::kUnavailable, "nobody listens"};
    for (const relay::Outgoing* record : records) {
      if (!permit.good()) return {told.accepted, relay::SinkDelivery::Ending::kOutOfTime, {}};
      if (refused.contains(record->id)) {
        return {told.accepted, relay::SinkDelivery::Ending::kRefused, "no \"thanks\" \\ \n\xff"};
      }
      sent.push_back(record->id);
      records_by_id[record->id] = *record;
      ++told.accepted;
    }
    return told;
  }

  Ids sent;
  std::map<std::string, relay::Outgoing> records_by_id;
  std::set<std::string> refused;
  bool away = false;
};

// Whoever sends this record to it is gone, with all that it knew; or any record.
class Killer final : public relay::Sink {
 public:
  struct Killed {};
  static constexpr const char* kAny = "";
  Killer(Receiver& receiver, std::string deadly)
      : receiver_(receiver), deadly_(std::move(deadly)) {}

  relay::SinkDelivery deliver(std::span<const relay::Outgoing* const> records,
                              const relay::Permit& permit) override {
    std::size_t before = 0;
    while (before < records.size() && !deadly_.empty() && records[before]->id != deadly_) ++before;
    auto delivery = receiver_.deliver(records.first(before), permit);
    if (before < records.size()) throw Killed{};
    return delivery;
  }

 private:
  Receiver& receiver_;
  const std::string deadly_;
};

// Runs as the machine's does, and can be moved on.
class MovedClock final : public ports::Clock {
 public:
  [[nodiscard]] std::int64_t wall_ms() override { return real_.wall_ms(); }
  [[nodiscard]] std::int64_t steady_ms() override { return real_.steady_ms() + moved_.count(); }
  void move(Duration span) { moved_ += span; }

 private:
  host::HostClock real_;
  Duration moved_{0};
};

struct Relay {
  Relay(Result<std::unique_ptr<relay::Source>> opened, relay::Sink& sink,
        delivery::RelaySettings settings = {})
      : source(*std::move(opened)), engine(*source, sink, clock, settings) {}

  delivery::Step round() {
    auto told = engine.step();
    if (!told) throw std::runtime_error(told.error().text());
    return *told;
  }
  // Until there is nothing to do at this moment.
  void drain() {
    while (round().idle_for == Duration{0}) {
    }
  }

  // Leases are looked after, as if that much time had passed for this relay alone.
  delivery::Step round_after(Duration span) {
    clock.move(span);
    return round();
  }

  MovedClock clock;
  std::unique_ptr<relay::Source> source;
  delivery::InlineRelay engine;
};

// Rounds until `count` records were sent; the most that one took.
inline std::uint64_t most_taken_until(Relay& relay, const Receiver& receiver, std::size_t count) {
  std::uint64_t most = 0;
  for (int i = 0; i < 1'000 && receiver.sent.size() < count; ++i) {
    most = std::max(most, relay.round().taken);
  }
  EXPECT_EQ(receiver.sent.size(), count);
  return most;
}

// Of five records, four were sent and a1 was given up after two attempts.
inline void expect_redrive_of_a1(Relay& relay, Receiver& receiver) {
  const auto letters = relay.source->dead_letters(10);
  ASSERT_EQ(letters->size(), 1U);
  EXPECT_EQ(letters->front().id, "a1");
  EXPECT_EQ(letters->front().attempts, 2U);
  const Ids others{"a2"};
  EXPECT_EQ(relay.source->redrive(others)->count, 0U);
  EXPECT_EQ(relay.source->redrive({})->count, 1U);
  receiver.refused.clear();
  while (receiver.sent.size() < 5) relay.drain();
  relay.drain();
  EXPECT_EQ(receiver.sent.back(), "a1");
  EXPECT_EQ(relay.source->report()->dead_letters, 0U);
  std::uint64_t sent = 0;
  for (const auto& lane : relay.source->report()->lanes) sent += lane.sent;
  EXPECT_EQ(sent, 5U);
}

}  // namespace hapax::testing_relay
