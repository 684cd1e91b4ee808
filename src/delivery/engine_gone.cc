// What an engine does about endpoints to which nothing is sent: those that are gone, that cannot be
// sent anything for a while, or whose workflow is paused.
#include <utility>

#include "base/format.h"
#include "delivery/engine.h"

namespace hapax::delivery {

// What a result says of the endpoint and not of its record, so that it counts for a lost one, too.
void Engine::heed(Endpoint& endpoint, const Start& start, std::size_t run,
                  const std::vector<SendResult>& results) {
  for (std::size_t i = 0; i < start.runs[run].numbers.size(); ++i) {
    const SendResult& result = results[start.places[run][i]];
    if (result.outcome == SendResult::Outcome::kGone) disable(endpoint, result);
    if (result.outcome != SendResult::Outcome::kNotSent || result.after == Duration{0}) continue;
    tell_breaker(endpoint, entries_.at(start.runs[run].numbers[i]), result);
  }
}

void Engine::disable(Endpoint& endpoint, const SendResult& result) {
  if (!endpoint.gone.empty()) return;
  ++counts_.gone;
  endpoint.gone = endpoint.called() + " is disabled: " + result.reason;
  if (auto* observer = endpoint.policy.observer) observer->disabled(result.reason);
  say(base::format(
      "{}; nothing is sent to it until the workflow is paused and resumed or the process starts "
      "again, and its records {}",
      endpoint.gone, endpoints_.size() == 1 ? "wait" : "become dead letters"));
}

// Z18: an endpoint that wants nothing any more holds up nobody else. Its records wait in the source
// if that serves nobody else; otherwise they would fill it, so they become dead letters, unsent.
void Engine::turn_away(const Endpoint& endpoint, const Entry& entry, Settlement::Kind if_alone) {
  if (endpoints_.size() == 1) return settle(entry, if_alone, Duration{0}, endpoint.gone);
  ++counts_.dead;
  settle(entry, Settlement::Kind::kDead, Duration{0}, endpoint.gone);
}

void Engine::turn_away_waiting(Endpoint& endpoint) {
  for (const HandoutNumber number : endpoint.queues.remove_all_waiting()) {
    turn_away(endpoint, entries_.at(number), Settlement::Kind::kNotSent);
    erase(number);
  }
}

void Engine::give_back_waiting() {
  for (const auto& endpoint : endpoints_) {
    endpoint->enable();  // Whoever resumes wants to know whether it is back.
    for (const HandoutNumber number : endpoint->queues.remove_all_waiting()) {
      settle(entries_.at(number), Settlement::Kind::kNotSent, Duration{0}, {});
      erase(number);
    }
  }
}

}  // namespace hapax::delivery
