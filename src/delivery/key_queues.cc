#include "delivery/key_queues.h"

#include <algorithm>

#include "base/assert.h"

namespace hapax::delivery {

void KeyQueues::add(const std::string& key, HandoutNumber number) {
  auto [at, fresh] = queues_.try_emplace(key);
  Queue& queue = at->second;
  if (fresh) queue.key = key;
  queue.numbers.push_back(number);
  ++waiting_;
  list(queue);
}

void KeyQueues::put_back(const std::string& key, const std::vector<HandoutNumber>& numbers,
                         std::int64_t due_ms) {
  const auto at = queues_.find(key);
  HAPAX_ASSERT(at != queues_.end() && at->second.under_way, "only what was under way comes back");
  Queue& queue = at->second;
  queue.numbers.insert(queue.numbers.begin(), numbers.begin(), numbers.end());
  waiting_ += numbers.size();
  queue.due_ms = due_ms;
}

// Z7: a key with a start under way is in no list, so nothing of it begins before that is over.
void KeyQueues::list(Queue& queue) {
  if (queue.listed || queue.under_way || queue.numbers.empty()) return;
  queue.listed = true;
  if (queue.due_ms == 0) {
    ready_.push_back(&queue);
  } else {
    delayed_.emplace(queue.due_ms, &queue);
  }
}

void KeyQueues::wake_due(std::int64_t now_ms) {
  while (!delayed_.empty() && delayed_.begin()->first <= now_ms) {
    Queue* queue = delayed_.begin()->second;
    delayed_.erase(delayed_.begin());
    queue->due_ms = 0;
    ready_.push_back(queue);
  }
}

std::optional<KeyQueues::Run> KeyQueues::next(std::int64_t now_ms, std::size_t most,
                                              Choice choice) {
  wake_due(now_ms);
  auto at = ready_.begin();
  if (choice == Choice::kTrustedFirst) {
    at = std::find_if(at, ready_.end(), [](const Queue* queue) { return !queue->failed; });
    if (at == ready_.end()) at = ready_.begin();
  }
  if (at == ready_.end()) return {};
  Queue& queue = **at;
  ready_.erase(at);
  queue.listed = false;
  queue.under_way = true;
  const std::size_t count = std::min(most, queue.numbers.size());
  const auto end = queue.numbers.begin() + static_cast<std::ptrdiff_t>(count);
  Run run{queue.key, {queue.numbers.begin(), end}};
  queue.numbers.erase(queue.numbers.begin(), end);
  waiting_ -= count;
  return run;
}

void KeyQueues::ended(const std::string& key) {
  const auto at = queues_.find(key);
  HAPAX_ASSERT(at != queues_.end() && at->second.under_way, "what ends was under way");
  at->second.under_way = false;
  list(at->second);
  forget_if_empty(key);
}

void KeyQueues::distrust(const std::string& key, bool failed) {
  if (const auto at = queues_.find(key); at != queues_.end()) at->second.failed = failed;
}

std::vector<HandoutNumber> KeyQueues::remove_waiting(const std::string& key) {
  const auto at = queues_.find(key);
  if (at == queues_.end()) return {};
  std::vector<HandoutNumber> numbers(at->second.numbers.begin(), at->second.numbers.end());
  for (const HandoutNumber number : numbers) remove(key, number);
  return numbers;
}

void KeyQueues::remove(const std::string& key, HandoutNumber number) {
  const auto at = queues_.find(key);
  if (at == queues_.end()) return;
  Queue& queue = at->second;
  const auto found = std::find(queue.numbers.begin(), queue.numbers.end(), number);
  if (found == queue.numbers.end()) return;
  queue.numbers.erase(found);
  --waiting_;
  if (!queue.numbers.empty()) return;
  if (queue.listed) {
    std::erase(ready_, &queue);
    std::erase_if(delayed_, [&](const auto& each) { return each.second == &queue; });
    queue.listed = false;
  }
  queue.due_ms = 0;
  forget_if_empty(key);
}

std::vector<HandoutNumber> KeyQueues::remove_all_waiting() {
  std::vector<HandoutNumber> numbers;
  numbers.reserve(waiting_);
  ready_.clear();
  delayed_.clear();
  waiting_ = 0;
  for (auto at = queues_.begin(); at != queues_.end();) {
    Queue& queue = at->second;
    numbers.insert(numbers.end(), queue.numbers.begin(), queue.numbers.end());
    queue.numbers.clear();
    queue.listed = false;
    queue.due_ms = 0;
    at = queue.under_way ? std::next(at) : queues_.erase(at);
  }
  return numbers;
}

void KeyQueues::forget_if_empty(const std::string& key) {
  const auto at = queues_.find(key);
  if (at->second.numbers.empty() && !at->second.under_way) queues_.erase(at);
}

std::optional<std::int64_t> KeyQueues::next_due_ms(std::int64_t now_ms) const {
  if (!ready_.empty()) return now_ms;
  if (delayed_.empty()) return {};
  return std::max(now_ms, delayed_.begin()->first);
}

}  // namespace hapax::delivery
