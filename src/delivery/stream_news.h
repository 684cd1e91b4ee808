// What wakes whoever waits for records of a consumer of a stream. The store calls on threads of its
// own, and may still call when whoever waits is gone.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include <hapax/store.h>
#include <hapax/time.h>

#include "base/mutex.h"

namespace hapax::delivery {

class StreamNews {
 public:
  explicit StreamNews(Store& store) : store_(store), state_(std::make_shared<State>()) {}
  ~StreamNews();
  StreamNews(const StreamNews&) = delete;
  StreamNews& operator=(const StreamNews&) = delete;

  // Set before the store is asked for records, so that nothing comes unnoticed in between.
  void watch(std::string_view stream, std::string_view consumer);
  // Returns after `most`, when the store has news, or when nudged. Whether the store has some.
  bool wait(Duration most);
  // Lets wait() return, once. From any thread.
  void nudge();
  // What nudges, whether or not this still lives.
  [[nodiscard]] std::function<void()> nudger() const;

 private:
  struct State {
    base::Mutex mutex;
    std::condition_variable came;
    bool some HAPAX_GUARDED_BY(mutex) = false;     // of the store
    bool nudged HAPAX_GUARDED_BY(mutex) = false;   // by somebody else
    bool watched HAPAX_GUARDED_BY(mutex) = false;  // a watch is set and has not fired
  };
  static void nudge(State& state);

  Store& store_;
  const std::shared_ptr<State> state_;
  std::uint64_t watch_number_ = 0;
};

}  // namespace hapax::delivery
