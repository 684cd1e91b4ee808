#include "engine/watches.h"

#include <algorithm>
#include <iterator>

#include "base/mutex.h"

namespace hapax::engine {

// Neighbours mostly say the same.
void Wakes::note(const core::Wake& wake) {
  if (const auto* claim = std::get_if<core::ClaimWake>(&wake)) claims.push_back(claim->claim);
  const auto* of = std::get_if<core::StreamWake>(&wake);
  if (of == nullptr) return;
  const bool known = !streams.empty() && streams.back().first == of->stream &&
                     streams.back().second == of->consumer;
  if (!known) streams.emplace_back(of->stream, of->consumer);
}

std::uint64_t Watches::watch_stream(std::string_view stream, std::string_view consumer,
                                    Changed changed) {
  return add(std::string(stream), {0, std::string(consumer), std::move(changed)});
}

std::uint64_t Watches::watch_claim(base::Hash128 claim, Changed changed) {
  return add(claim, {0, {}, std::move(changed)});
}

std::uint64_t Watches::add(Place place, Watcher watcher) {
  const base::MutexLock lock(mutex_);
  const std::uint64_t number = next_++;
  watcher.number = number;
  places_[place].push_back(std::move(watcher));
  numbers_.emplace(number, std::move(place));
  watching_.fetch_add(1);
  return number;
}

void Watches::end(std::uint64_t number) {
  const base::MutexLock lock(mutex_);
  const auto known = numbers_.find(number);
  if (known == numbers_.end()) return;  // It was told.
  const auto place = places_.find(known->second);
  std::erase_if(place->second, [&](const Watcher& one) { return one.number == number; });
  if (place->second.empty()) places_.erase(place);
  numbers_.erase(known);
  watching_.fetch_sub(1);
}

void Watches::take(const Place& place, std::string_view consumer, Watchers& woken) {
  const auto found = places_.find(place);
  if (found == places_.end()) return;
  Watchers& here = found->second;
  const auto stays = [&](const Watcher& one) {
    return !consumer.empty() && one.consumer != consumer;
  };
  const auto leaving = std::stable_partition(here.begin(), here.end(), stays);
  for (auto one = leaving; one != here.end(); ++one) numbers_.erase(one->number);
  watching_.fetch_sub(static_cast<std::size_t>(here.end() - leaving));
  woken.insert(woken.end(), std::move_iterator(leaving), std::move_iterator(here.end()));
  here.erase(leaving, here.end());
  if (here.empty()) places_.erase(found);
}

void Watches::tell(Wakes& wakes) {
  if (wakes.empty()) return;
  Watchers woken;
  {
    const base::MutexLock lock(mutex_);
    for (const auto& [stream, consumer] : wakes.streams) take(stream, consumer, woken);
    for (const base::Hash128 claim : wakes.claims) take(claim, {}, woken);
  }
  wakes.clear();
  for (const Watcher& one : woken) one.changed();
}

void Watches::tell_all() {
  Watchers woken;
  {
    const base::MutexLock lock(mutex_);
    for (auto& [place, here] : places_) {
      woken.insert(woken.end(), std::move_iterator(here.begin()), std::move_iterator(here.end()));
    }
    places_.clear();
    numbers_.clear();
    watching_ = 0;
  }
  for (const Watcher& one : woken) one.changed();
}

}  // namespace hapax::engine
