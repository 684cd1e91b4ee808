// What the engine holds: how many records it takes, and how many of them for one endpoint.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "delivery/engine.h"

namespace hapax::delivery {

namespace {

using Kind = Settlement::Kind;

constexpr std::uint32_t kProbeRoom = 16;

// A record without a key waits for nobody, so its queue is its own. No key of a caller begins so.
std::string queue_key(const Handout& handout) {
  if (!handout.record.key.empty()) return handout.record.key;
  std::string key(1 + sizeof handout.number, '\0');
  std::memcpy(key.data() + 1, &handout.number, sizeof handout.number);
  return key;
}

}  // namespace

std::uint32_t Engine::room() const {
  if (winding_down_ || paused_ || entries_.size() >= settings_.window) return 0;
  const auto room = settings_.window - static_cast<std::uint32_t>(entries_.size());
  if (endpoints_.size() == 1 && !endpoints_.front()->gone.empty()) return 0;
  if (endpoints_.size() != 1 || !endpoints_.front()->breaker.doubts()) return room;
  // Z8: what is taken for an endpoint that takes nothing would only be held back. Some records are
  // wanted to find out how it is.
  const Endpoint& only = *endpoints_.front();
  const std::int64_t now = clock_.steady_ms();
  if (only.breaker.closed()) return now < look_at_ms_ ? 0 : std::min(room, kProbeRoom);
  const bool has_one = only.under_way != 0 || only.queues.next_due_ms(now) == now;
  return has_one || now < only.breaker.until_ms() ? 0 : std::min(room, kProbeRoom);
}

// Z26: endpoints that hang can keep what they hold for as long as a request takes. If all of them
// together may hold more than the window, one holds more than its share of half the window only
// while the other half is free. So those that hang leave room for those that live.
std::size_t Engine::held_max_of(const Endpoint& endpoint) const {
  const std::size_t half = settings_.window / 2;
  const bool scarce = held_max_ > settings_.window && entries_.size() > half;
  if (!scarce) return endpoint.policy.held_max;
  const std::size_t share = std::max<std::size_t>(half / endpoints_.size(), 1);
  return std::min<std::size_t>(endpoint.policy.held_max, share);
}

void Engine::admit(Handout handout) {
  HAPAX_ASSERT(handout.endpoint < endpoints_.size(), "a record goes to an endpoint that there is");
  Endpoint& endpoint = *endpoints_[handout.endpoint];
  const HandoutNumber number = handout.number;
  std::string key = queue_key(handout);
  const auto [at, fresh] = entries_.try_emplace(
      number, Entry{.handout = std::move(handout), .key = std::move(key), .ordinal = ++ordinal_});
  HAPAX_ASSERT(fresh, "a source gives each hand-out a number of its own");
  Entry& entry = at->second;
  ++endpoint.held;
  const Outgoing& record = entry.handout.record;
  if (!record.flaw.empty()) {
    ++counts_.dead;
    say(base::format("record {} is a dead letter: {}", record.id, record.flaw));
    settle(entry, Kind::kDead, Duration{0}, record.flaw);
  } else if (record.blocked) {
    settle(entry, Kind::kHeld, Duration{0}, {});
  } else if (!endpoint.gone.empty()) {
    turn_away(endpoint, entry, Kind::kNotSent);
  } else if (endpoint.policy.held_max != 0 && endpoint.held > held_max_of(endpoint)) {
    ++counts_.deferred;
    settle(entry, Kind::kDeferred, endpoint.defer(clock_.steady_ms()), {});
  } else {
    endpoint.queues.add(entry.key, number);
    if (endpoint.suspects.contains(record.id)) endpoint.queues.distrust(entry.key, true);
    activate(entry.handout.endpoint);
    return;
  }
  erase(number);
}

}  // namespace hapax::delivery
