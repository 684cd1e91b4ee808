#include "delivery/doubts.h"

namespace hapax::delivery {

using Told = OutcomeProbe::Told;

Doubts::View Doubts::look(const std::string& key, Time since, Time now) {
  collect();
  const auto at = asked_.find(key);
  if (at != asked_.end()) {
    if (!at->second.answered) return {Told::kNothing, kAnswerPause};
    const Asked asked = at->second;
    asked_.erase(at);
    if (asked.since == since) return {asked.told, kAskAgain};
  }
  if (now < since + patience_) return {Told::kNothing, since + patience_ - now};
  if (asked_.size() >= kAskedMax) {
    // Those whose records went elsewhere are not looked for any more.
    std::erase_if(asked_, [](const auto& each) { return each.second.answered; });
    if (asked_.size() >= kAskedMax) return {Told::kNothing, kCrowdPause};
  }
  asked_.emplace(key, Asked{.since = since});
  probe_->ask(key, [heard = heard_, key](Told told) {
    const base::MutexLock lock(heard->mutex);
    heard->answers.emplace_back(key, told);
  });
  return {Told::kNothing, kAnswerPause};
}

void Doubts::collect() {
  const base::MutexLock lock(heard_->mutex);
  for (auto& [key, told] : heard_->answers) {
    const auto at = asked_.find(key);
    if (at == asked_.end()) continue;
    at->second.answered = true;
    at->second.told = told;
  }
  heard_->answers.clear();
}

}  // namespace hapax::delivery
