#include "delivery/engine.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/format.h"

namespace hapax::delivery {

namespace {

using Kind = Settlement::Kind;
using Outcome = SendResult::Outcome;

constexpr std::int64_t kNeverMs = std::numeric_limits<std::int64_t>::max();
constexpr Duration kIdleMax{3'600'000};
constexpr Duration kLookEvery{500};  // for records of other keys, while an endpoint is in doubt
constexpr Duration kNotSentRest{50};
constexpr Duration kRestMin{2};  // between two takes, while every endpoint has enough
constexpr Duration kRestMax{50};

}  // namespace

Engine::Engine(Source& source, ports::Clock& clock, const EngineSettings& settings, Log log,
               std::function<void()> arrived)
    : source_(source),
      clock_(clock),
      settings_(settings),
      log_(std::move(log)),
      completions_(std::make_shared<Completions>(std::move(arrived))) {}

Engine::~Engine() { completions_->close(); }

std::uint32_t Engine::add_endpoint(Sink& sink, const EndpointPolicy& policy) {
  endpoints_.push_back(std::make_unique<Endpoint>(sink, policy));
  held_max_ += policy.held_max;
  return static_cast<std::uint32_t>(endpoints_.size() - 1);
}

void Engine::wind_down() {
  if (winding_down_.exchange(true)) return;
  for (const auto& endpoint : endpoints_) endpoint->sink.wind_down();
}

Result<Step> Engine::step() {
  const std::uint64_t taken_before = counts_.taken;
  collect();
  if (paused_) give_back_waiting();
  choose();
  // What is held already need not wait until the source has answered.
  if (!settings_.announces) begin_chosen();
  if (take_is_due()) HAPAX_CHECK(take());
  if (!settings_.announces) choose();
  begin_chosen();
  Step step{.taken = counts_.taken - taken_before, .under_way = starts_.size()};
  step.idle_for = idle_for();
  step.paused = std::any_of(active_.begin(), active_.end(), [this](std::uint32_t index) {
    return !endpoints_[index]->breaker.closed();
  });
  return step;
}

Status Engine::stop() {
  collect();
  for (const auto& [number, start] : starts_) settle_unanswered(start);
  const std::vector<Settlement> settled = std::exchange(settlements_, {});
  forget();
  tell_attempts();
  return source_.give_back(settled);
}

void Engine::settle_unanswered(const Start& start) {
  for (const auto& run : start.runs) {
    for (const HandoutNumber number : run.numbers) {
      const Entry& entry = entries_.at(number);
      note_unanswered(*endpoints_[start.endpoint], start, entry);
      if (entry.lost && !settings_.announces) continue;
      ++counts_.unknown;
      settle(entry, Kind::kUnknown, Duration{0}, "the sender ended before the answer came", true);
    }
  }
}

// --- take ------------------------------------------------------------------------------------

bool Engine::take_is_due() const {
  const std::int64_t now = clock_.steady_ms();
  if (!chosen_.empty() || now >= renew_at_ms_) return true;
  return (!settlements_.empty() || room() > 0) && !rests(now);
}

// A take is a wait for a disk, in which nothing begins. While no endpoint could begin anything for
// it, takes follow each other with a pause that is as long as they are.
bool Engine::rests(std::int64_t now) const {
  return now < rest_until_ms_ &&
         std::all_of(endpoints_.begin(), endpoints_.end(),
                     [](const auto& endpoint) { return endpoint->sated(); });
}

Status Engine::take() {
  // Z1: the lease counts from before it was asked for, so it is over here before it is over there.
  const std::int64_t asked_ms = clock_.steady_ms();
  const std::vector<Beginning> announced = beginning();
  const TakeCall call{
      .settled = settlements_, .beginning = announced, .room = room(), .lease = settings_.lease};
  if (call.room > 0) look_at_ms_ = asked_ms + kLookEvery.count();
  tell_attempts();
  Result<Hand> hand = source_.take(call);
  const std::int64_t answered_ms = clock_.steady_ms();
  rest_until_ms_ = answered_ms + std::clamp<std::int64_t>(answered_ms - asked_ms, kRestMin.count(),
                                                          kRestMax.count());
  // Z3: nobody knows what counts now. What was delivered and not settled comes again, under its id.
  settlements_.clear();
  if (!hand) {
    forget();
    return std::move(hand).error();
  }
  lease_end_ms_ = asked_ms + hand->lease_left.count();
  renew_at_ms_ = asked_ms + renewal_after(hand->lease_left).count();
  next_due_ms_ = hand->next_due ? asked_ms + hand->next_due->count() : kNeverMs;
  more_ = hand->more || !hand->records.empty();
  for (const HandoutNumber number : hand->lost) lose(number);
  drop_lost_of_chosen();
  counts_.taken += hand->records.size();
  for (Handout& handout : hand->records) admit(std::move(handout));
  return Ok{};
}

std::vector<Beginning> Engine::beginning() const {
  std::vector<Beginning> all;
  for (const Start& start : chosen_) {
    for (const auto& run : start.runs) {
      for (const HandoutNumber number : run.numbers) {
        all.push_back({number, &entries_.at(number).handout.record});
      }
    }
  }
  return all;
}

// A third of the lease after it was given. A source that gives shorter ones is asked more often.
Duration Engine::renewal_after(Duration left) const {
  const Duration rest = left - settings_.lease * 2 / 3;
  return rest > Duration{0} ? rest : std::max(left / 6, Duration{100});
}

void Engine::lose(HandoutNumber number) {
  const auto at = entries_.find(number);
  if (at == entries_.end() || at->second.lost) return;
  ++counts_.lost;
  Entry& entry = at->second;
  Endpoint& endpoint = *endpoints_[entry.handout.endpoint];
  const std::size_t waiting = endpoint.queues.waiting();
  endpoint.queues.remove(entry.key, number);
  if (endpoint.queues.waiting() < waiting) {
    erase(number);
  } else {
    entry.lost = true;  // Under way or chosen: its key waits until the answer is there.
  }
}

void Engine::drop_lost_of_chosen() {
  for (Start& start : chosen_) {
    Endpoint& endpoint = *endpoints_[start.endpoint];
    for (auto& run : start.runs) {
      std::erase_if(run.numbers, [&](HandoutNumber number) {
        if (!entries_.at(number).lost) return false;
        erase(number);
        return true;
      });
      if (run.numbers.empty()) endpoint.queues.ended(run.key);
    }
    std::erase_if(start.runs, [](const auto& run) { return run.numbers.empty(); });
    if (start.runs.empty()) --endpoint.under_way;
  }
  std::erase_if(chosen_, [](const Start& start) { return start.runs.empty(); });
}

// Nothing is held any longer. What is under way cannot be called back.
void Engine::forget() {
  for (const auto& endpoint : endpoints_) {
    for (const HandoutNumber number : endpoint->queues.remove_all_waiting()) {
      ++counts_.lost;
      erase(number);
    }
  }
  for (auto& [number, entry] : entries_) {
    if (!std::exchange(entry.lost, true)) ++counts_.lost;
  }
  drop_lost_of_chosen();
  lease_end_ms_ = 0;
  renew_at_ms_ = 0;
}

// --- start -----------------------------------------------------------------------------------

bool Engine::may_begin() const {
  return !winding_down_ && !paused_ &&
         clock_.steady_ms() < lease_end_ms_ - settings_.margin.count();
}

void Engine::activate(std::uint32_t index) {
  if (std::exchange(endpoints_[index]->active, true)) return;
  active_.push_back(index);
}

void Engine::choose() {
  std::erase_if(active_, [&](std::uint32_t index) {
    Endpoint& endpoint = *endpoints_[index];
    endpoint.active = endpoint.queues.waiting() != 0;
    return !endpoint.active;
  });
  if (!may_begin() || active_.empty()) return;
  const std::int64_t now = clock_.steady_ms();
  first_ = (first_ + 1) % active_.size();
  // One start each in turn, so that an endpoint with much to send does not begin before the others.
  for (bool any = true; any;) {
    any = false;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      const std::uint32_t index = active_[(first_ + i) % active_.size()];
      Endpoint& endpoint = *endpoints_[index];
      if (!endpoint.may_start(now)) continue;
      Start start = choose_from(endpoint, index);
      if (start.runs.empty()) continue;
      ++endpoint.under_way;
      chosen_.push_back(std::move(start));
      any = true;
    }
  }
}

Engine::Start Engine::choose_from(Endpoint& endpoint, std::uint32_t index) {
  const std::int64_t now = clock_.steady_ms();
  const bool whole = endpoint.breaker.closed();
  const auto choice = whole ? KeyQueues::Choice::kAny : KeyQueues::Choice::kTrustedFirst;
  std::size_t left = whole ? endpoint.sink.batch_max() : 1;
  Start start{.endpoint = index};
  while (left > 0) {
    auto run = endpoint.queues.next(now, left, choice);
    if (!run) break;
    left -= run->numbers.size();
    endpoint.rate.spend(run->numbers.size());
    start.runs.push_back(*std::move(run));
  }
  return start;
}

void Engine::begin_chosen() {
  for (Start& start : std::exchange(chosen_, {})) begin(std::move(start));
}

void Engine::begin(Start start) {
  Endpoint& endpoint = *endpoints_[start.endpoint];
  // In the order in which the source gave them, whatever their keys.
  struct Placed {
    std::uint64_t ordinal;
    std::size_t run;
    std::size_t at;
    const Outgoing* record;
  };
  std::vector<Placed> placed;
  start.places.resize(start.runs.size());
  for (std::size_t run = 0; run < start.runs.size(); ++run) {
    const auto& numbers = start.runs[run].numbers;
    start.places[run].resize(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const Entry& entry = entries_.at(numbers[i]);
      placed.push_back({entry.ordinal, run, i, &entry.handout.record});
    }
  }
  std::sort(placed.begin(), placed.end(),
            [](const Placed& a, const Placed& b) { return a.ordinal < b.ordinal; });
  std::vector<const Outgoing*> records;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    start.places[placed[i].run][placed[i].at] = i;
    records.push_back(placed[i].record);
  }
  start.count = records.size();
  start.began_ms = clock_.steady_ms();
  counts_.attempts += records.size();
  endpoint.tell_began(records);
  const std::uint64_t number = ++start_count_;
  starts_.emplace(number, std::move(start));
  endpoint.sink.start(records, lease_end_ms_ - settings_.margin.count(),
                      [completions = completions_, number](std::vector<SendResult> results) {
                        completions->put(number, std::move(results));
                      });
}

// --- finish ----------------------------------------------------------------------------------

void Engine::collect() {
  for (auto& completion : completions_->take()) {
    const auto at = starts_.find(completion.start);
    HAPAX_ASSERT(at != starts_.end(), "a sink answers each start once");
    Start start = std::move(at->second);
    starts_.erase(at);
    finish(std::move(start), completion.results);
  }
}

void Engine::finish(Start start, std::vector<SendResult>& results) {
  HAPAX_ASSERT(results.size() == start.count, "a sink says of each record what became of it");
  Endpoint& endpoint = *endpoints_[start.endpoint];
  --endpoint.under_way;
  // A sink that sends nothing at all is not asked all the time.
  const bool sent = std::any_of(results.begin(), results.end(), [](const SendResult& result) {
    return result.outcome != Outcome::kNotSent;
  });
  const std::int64_t rest_ms = sent ? 0 : clock_.steady_ms() + kNotSentRest.count();
  for (std::size_t run = 0; run < start.runs.size(); ++run) {
    heed(endpoint, start, run, results);
    note_attempts(endpoint, start, run, results);
  }
  for (std::size_t run = 0; run < start.runs.size(); ++run) {
    finish_run(endpoint, start, run, results, rest_ms);
  }
  if (!endpoint.gone.empty()) turn_away_waiting(endpoint);
}

void Engine::finish_run(Endpoint& endpoint, const Start& start, std::size_t run,
                        std::vector<SendResult>& results, std::int64_t rest_ms) {
  const auto& [key, numbers] = start.runs[run];
  std::vector<HandoutNumber> again;
  std::int64_t due_ms = 0;
  bool key_waits = false;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Entry& entry = entries_.at(numbers[i]);
    SendResult& result = results[start.places[run][i]];
    if (entry.lost) {
      if (settings_.announces) settle_late(entry, result);
      erase(numbers[i]);
    } else if (settings_.announces && result.outcome == Outcome::kNotSent) {
      const Then then = give_back_unsent(entry, rest_ms);
      key_waits = key_waits || then == Then::kKeyWaits;
      erase(numbers[i]);
    } else if (key_waits) {
      hold_back({numbers[i]});
    } else if (!again.empty()) {
      again.push_back(numbers[i]);
    } else {
      const Then then = judge(endpoint, entry, result);
      if (then == Then::kAgain) {
        again.push_back(numbers[i]);
        const bool ours = result.outcome == Outcome::kNotSent || result.cut_off;
        due_ms = ours ? rest_ms : due_again_ms(endpoint, entry, result);
        continue;
      }
      key_waits = then == Then::kKeyWaits;
      erase(numbers[i]);
    }
  }
  // Z5: behind a record that waits, the others of its key wait too.
  if (key_waits) hold_back(endpoint.queues.remove_waiting(key));
  if (!again.empty()) {
    endpoint.queues.put_back(key, again, due_ms);
    activate(start.endpoint);
  }
  endpoint.queues.ended(key);
}

Engine::Then Engine::judge(Endpoint& endpoint, Entry& entry, SendResult& result) {
  switch (result.outcome) {
    case Outcome::kDelivered:
      ++counts_.delivered;
      ++endpoint.signs;
      endpoint.breaker.passed();
      endpoint.deferral = {};
      endpoint.suspects.erase(entry.handout.record.id);
      settle(entry, Kind::kDelivered, Duration{0}, {});
      return Then::kNext;
    case Outcome::kRejected:
      if (result.answered) {  // Z23: otherwise its sink has judged it, and nothing was sent.
        ++endpoint.signs;
        endpoint.breaker.passed();
      }
      return refuse(endpoint, entry, result);
    case Outcome::kNotSent:
      return Then::kAgain;
    case Outcome::kGone:
      turn_away(endpoint, entry, Kind::kDeferred);  // It was sent.
      return Then::kNext;
    case Outcome::kUnknown:
      return judge_unknown(endpoint, entry, result);
    case Outcome::kTryLater:
      break;
  }
  return fail(endpoint, entry, result);
}

Engine::Then Engine::judge_unknown(Endpoint& endpoint, Entry& entry, SendResult& result) {
  // Y4: a lease that ends is no failure, unless a whole one was too short.
  const bool cut_off = result.cut_off && !settings_.announces;
  if (cut_off && !std::exchange(entry.cut_off, true)) return Then::kAgain;
  if (endpoint.policy.on_unknown == OnUnknown::kRetry) return fail(endpoint, entry, result);
  ++counts_.unknown;
  tell_breaker(endpoint, entry, result);
  say(base::format("the outcome of record {} is unknown: {}", entry.handout.record.id,
                   result.reason));
  settle(entry, Kind::kUnknown, Duration{0}, std::move(result.reason), true);
  return endpoint.policy.on_failure == KeyOrder::kBlock ? Then::kKeyWaits : Then::kNext;
}

// Z13: every attempt that was noted is settled, so one that was not made goes back, too.
Engine::Then Engine::give_back_unsent(const Entry& entry, std::int64_t rest_ms) {
  const Duration rest{std::max<std::int64_t>(rest_ms - clock_.steady_ms(), 0)};
  settle(entry, Kind::kNotSent, rest, {});
  return entry.handout.record.key.empty() ? Then::kNext : Then::kKeyWaits;
}

// Z13: somebody else has the record, and what became of this attempt of it is known only here.
void Engine::settle_late(const Entry& entry, SendResult& result) {
  const auto kind = result.outcome == Outcome::kDelivered ? Kind::kDelivered
                    : result.outcome == Outcome::kUnknown ? Kind::kUnknown
                    : result.outcome == Outcome::kNotSent ? Kind::kNotSent
                                                          : Kind::kRetry;
  settle(entry, kind, Duration{0}, std::move(result.reason), kind == Kind::kUnknown);
}

Engine::Then Engine::fail(Endpoint& endpoint, Entry& entry, SendResult& result) {
  Suspect& suspect = endpoint.suspect(entry.handout.record.id);
  const bool counts = costs_an_attempt(endpoint, suspect);
  tell_breaker(endpoint, entry, result);
  suspect.signs = endpoint.signs;
  ++suspect.failures;
  // Of an endpoint that fails for others, too, a failure says nothing about the record.
  if (result.answered && endpoint.breaker.closed()) ++suspect.lone_failures;
  ++entry.failures;
  if (counts) return refuse(endpoint, entry, result);
  endpoint.queues.distrust(entry.key, true);
  // Z8: one that failed again would hold up what its source has behind it, so it waits there.
  const bool at_once = entry.failures == 1 && result.after == Duration{0};
  if (at_once && !settings_.announces) return Then::kAgain;
  ++counts_.deferred;
  const Duration after{due_again_ms(endpoint, entry, result) - clock_.steady_ms()};
  const bool may_have_arrived = result.outcome == Outcome::kUnknown;
  settle(entry, Kind::kDeferred, after, std::move(result.reason), may_have_arrived);
  return entry.handout.record.key.empty() ? Then::kNext : Then::kKeyWaits;
}

bool Engine::costs_an_attempt(const Endpoint& endpoint, const Suspect& suspect) const {
  if (endpoint.policy.failure_cost == FailureCost::kAttempt) return true;
  // Z6: the endpoint took others since this record failed, so the failure is the record's own.
  if (suspect.failures > 0 && endpoint.signs > suspect.signs) return true;
  return suspect.lone_failures >= endpoint.policy.lone_failures_max;
}

Engine::Then Engine::refuse(Endpoint& endpoint, Entry& entry, const SendResult& result) {
  const Outgoing& record = entry.handout.record;
  const bool may_have_arrived = result.outcome == Outcome::kUnknown;
  if (record.attempt >= endpoint.policy.attempts_max || result.hopeless) {
    ++counts_.dead;
    say(base::format("record {} is {} after {} attempts: {}", record.id,
                     settings_.announces || settings_.blocks ? "given up" : "a dead letter",
                     record.attempt, result.reason));
    endpoint.suspects.erase(record.id);
    settle(entry, Kind::kDead, Duration{0}, result.reason, may_have_arrived);
    return Then::kNext;
  }
  ++counts_.retried;
  const Duration pause =
      endpoint.policy.retry_after ? endpoint.policy.retry_after(record.attempt) : Duration{1'000};
  settle(entry, Kind::kRetry, std::max(pause, result.after), result.reason, may_have_arrived);
  return endpoint.policy.on_failure == KeyOrder::kBlock && !record.key.empty() ? Then::kKeyWaits
                                                                               : Then::kNext;
}

std::int64_t Engine::due_again_ms(Endpoint& endpoint, const Entry& entry,
                                  const SendResult& result) const {
  const std::int64_t now = clock_.steady_ms();
  const BreakerSettings& settings = endpoint.policy.breaker;
  const std::uint32_t failures = endpoint.suspect(entry.handout.record.id).failures;
  Duration pause = settings.pause_first;
  for (std::uint32_t i = 1; i < failures && pause < settings.pause_max; ++i) pause *= 2;
  pause = std::max({std::min(pause, settings.pause_max), result.after, Duration{1}});
  return std::max(now + pause.count(), endpoint.breaker.until_ms());
}

void Engine::tell_breaker(Endpoint& endpoint, const Entry& entry, const SendResult& result) {
  const bool was_closed = endpoint.breaker.closed();
  const bool opened = endpoint.breaker.failed(
      clock_.steady_ms(), {.key = entry.key, .answered = result.answered, .asked = result.after});
  if (!opened) return;
  ++counts_.pauses;
  if (auto* observer = endpoint.policy.observer) observer->paused();
  if (was_closed) say(endpoint.called() + " is unavailable, pausing: " + result.reason);
}

void Engine::hold_back(const std::vector<HandoutNumber>& numbers) {
  for (const HandoutNumber number : numbers) {
    settle(entries_.at(number), Kind::kHeld, Duration{0}, {});
    erase(number);
  }
}

void Engine::settle(const Entry& entry, Kind kind, Duration after, std::string reason,
                    bool may_have_arrived) {
  endpoints_[entry.handout.endpoint]->tell_settled(clock_, entry.handout.record, kind, reason);
  settlements_.push_back({entry.handout.number, kind, after, std::move(reason), may_have_arrived});
}

void Engine::erase(HandoutNumber number) {
  const auto at = entries_.find(number);
  --endpoints_[at->second.handout.endpoint]->held;
  entries_.erase(at);
}

Duration Engine::idle_for() {
  const std::int64_t now = clock_.steady_ms();
  if (!completions_->empty()) return Duration{0};
  const bool wants = room() > 0;
  std::int64_t until = std::min(renew_at_ms_, now + kIdleMax.count());
  if (rests(now)) {
    until = std::min(until, rest_until_ms_);
  } else if (!settlements_.empty() || (more_ && wants)) {
    return Duration{0};
  } else if (wants) {
    until = std::min(until, next_due_ms_);
  }
  if (endpoints_.size() == 1 && endpoints_.front()->breaker.until_ms() > now) {
    until = std::min(until, endpoints_.front()->breaker.until_ms());
  }
  if (!wants && look_at_ms_ > now) until = std::min(until, look_at_ms_);
  if (may_begin()) {
    for (const std::uint32_t index : active_) {
      if (const auto next = endpoints_[index]->next_ms(now)) until = std::min(until, *next);
    }
  }
  return Duration{std::max<std::int64_t>(until - now, 0)};
}

}  // namespace hapax::delivery
