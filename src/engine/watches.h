// Who waits for what, and the facts that wake them. Facts are noted when they are decided or
// followed, and told when they are durable. Costs next to nothing while nobody waits.
//
// E12: whoever watches first and looks then misses nothing. A fact that was decided before somebody
//      watched is in what the look sees; every later one is noted, because a watch is there before
//      the look is handed over.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/hash128.h"
#include "base/mutex.h"
#include "core/wakes.h"

namespace hapax::engine {

// What became possible, of which nobody was told yet.
struct Wakes {
  std::vector<std::pair<std::string, std::string>> streams;  // and consumers; empty: all of them
  std::vector<base::Hash128> claims;

  void note(const core::Wake& wake);
  void clear() {
    streams.clear();
    claims.clear();
  }
  [[nodiscard]] bool empty() const { return streams.empty() && claims.empty(); }
};

class Watches {
 public:
  using Changed = std::function<void()>;

  // From any thread. The number ends it.
  std::uint64_t watch_stream(std::string_view stream, std::string_view consumer, Changed changed);
  std::uint64_t watch_claim(base::Hash128 claim, Changed changed);
  void end(std::uint64_t number);
  [[nodiscard]] bool any() const { return watching_.load() != 0; }

  // What is noted is durable: calls whoever waits for it, once, and clears it.
  void tell(Wakes& wakes);
  // Anything may have changed.
  void tell_all();

 private:
  struct Watcher {
    std::uint64_t number = 0;
    std::string consumer;
    Changed changed;
  };
  using Place = std::variant<std::string, base::Hash128>;  // a stream, or a claim
  using Watchers = std::vector<Watcher>;

  std::uint64_t add(Place place, Watcher watcher);
  // Under the lock: moves those who wait there, for that consumer, to `woken`.
  void take(const Place& place, std::string_view consumer, Watchers& woken) HAPAX_REQUIRES(mutex_);

  std::atomic<std::size_t> watching_ = 0;
  base::Mutex mutex_;
  std::map<Place, Watchers> places_ HAPAX_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Place> numbers_ HAPAX_GUARDED_BY(mutex_);
  std::uint64_t next_ HAPAX_GUARDED_BY(mutex_) = 1;
};

}  // namespace hapax::engine
