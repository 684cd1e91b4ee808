// The records that wait for one endpoint, in their order per key. A key has at most one start under
// way. Knows numbers of hand-outs only, not what they are.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "delivery/source.h"

namespace hapax::delivery {

class KeyQueues {
 public:
  // At the end of its key's queue.
  void add(const std::string& key, HandoutNumber number);
  // At the front again, in their order, after a start that did not deliver them; not before
  // `due_ms`.
  void put_back(const std::string& key, const std::vector<HandoutNumber>& numbers,
                std::int64_t due_ms);
  // The first of a key whose turn it is, with those behind it, at most `most`. They are under way
  // until ended(). `trusted`: of a key that has not failed, if there is one.
  struct Run {
    std::string key;
    std::vector<HandoutNumber> numbers;
  };
  enum class Choice : std::uint8_t { kAny, kTrustedFirst };
  [[nodiscard]] std::optional<Run> next(std::int64_t now_ms, std::size_t most, Choice choice);
  // What was under way of this key is over.
  void ended(const std::string& key);
  // Whether its records failed lately.
  void distrust(const std::string& key, bool failed);

  // Everything that waits of a key; it leaves.
  [[nodiscard]] std::vector<HandoutNumber> remove_waiting(const std::string& key);
  void remove(const std::string& key, HandoutNumber number);
  // Everything that waits, of all keys; it leaves.
  [[nodiscard]] std::vector<HandoutNumber> remove_all_waiting();

  [[nodiscard]] std::size_t waiting() const { return waiting_; }
  // Whether next() would have one, the time aside; if not yet, when.
  [[nodiscard]] std::optional<std::int64_t> next_due_ms(std::int64_t now_ms) const;

 private:
  struct Queue {
    std::string key;
    std::deque<HandoutNumber> numbers;
    std::int64_t due_ms = 0;
    bool under_way = false;
    bool listed = false;  // in ready_ or delayed_
    bool failed = false;
  };

  void list(Queue& queue);
  void wake_due(std::int64_t now_ms);
  void forget_if_empty(const std::string& key);

  std::unordered_map<std::string, Queue> queues_;
  std::deque<Queue*> ready_;  // its turn, by and by; one that was emptied meanwhile is passed over
  std::multimap<std::int64_t, Queue*> delayed_;
  std::size_t waiting_ = 0;
};

}  // namespace hapax::delivery
