#include "delivery/stream_source.h"

#include <algorithm>
#include <charconv>

#include <hapax/limits.h>

#include "base/format.h"
#include "delivery/stream_settling.h"

namespace hapax::delivery {

namespace {

using Kind = Settlement::Kind;

// "3 1700000000000": attempts that failed, and when the first one was handed out.
template <class Number>
bool read_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

StreamSource::StreamSource(Store& store, ports::Clock& clock, StreamSourceSettings settings,
                           KeyOf key_of, Route route, Log log)
    : store_(store),
      clock_(clock),
      settings_(std::move(settings)),
      key_of_(std::move(key_of)),
      route_(std::move(route)),
      log_(std::move(log)),
      blocks_(store, {settings_.stream, settings_.consumer, settings_.blocked, settings_.hold}),
      keeping_(store, {settings_.stream, settings_.consumer, settings_.keeping}, log_),
      news_(store) {
  if (settings_.attempt_log) attempt_log_.emplace(store_, clock_, *settings_.attempt_log, log_);
  if (!settings_.claims) return;
  claims_.emplace(*settings_.claims, settings_.owner);
  if (settings_.claims->probe)
    doubts_.emplace(settings_.claims->probe, settings_.claims->ask_after);
}

Status StreamSource::open() {
  if (settings_.own) HAPAX_CHECK(ensure_stream(store_, {settings_.stream, *settings_.own}));
  if (attempt_log_) HAPAX_CHECK(attempt_log_->look());
  HAPAX_TRY(const std::uint64_t stream_uid, find_source(store_, settings_.stream));
  HAPAX_CHECK(keeping_.open(stream_uid));
  stream_uid_ = stream_uid;
  return Ok{};
}

void StreamSource::note_attempts(std::vector<Attempt> attempts) {
  if (attempt_log_) attempt_log_->note(std::move(attempts));
}

// --- take ------------------------------------------------------------------------------------

Result<Hand> StreamSource::take(const TakeCall& call) {
  end_attempts(call.settled);
  if (!stream_uid_) {
    forget();
    HAPAX_CHECK(open());
  }
  news_.watch(settings_.stream, settings_.consumer);
  if (claims_) {
    Status ready = claims_->find_unheard(store_);
    if (ready) ready = resolve_doubts();
    if (!ready) {
      forget();
      return std::move(ready).error();
    }
  }
  Settling settling(settings_);
  for (const Settlement& settlement : call.settled) settle(settling, settlement);
  settle_leftovers(settling);
  HAPAX_CHECK(settle_blocks());
  const std::int64_t asked_ms = clock_.steady_ms();
  // Leases are renewed together, when a third of the time is over.
  const bool some = !held_.empty() || (claims_ && !claims_->idle());
  const bool renews = some && lease_end_ms_ - asked_ms <= call.lease.count() * 2 / 3;
  renew(settling, call, renews);
  tell_log(settling);
  const bool receives = call.room > 0 && held_bytes_ < kHeldBytesMax;
  if (receives) {
    ignore(keeping_.notice(time_from_ms(log_now_ms())),
           "what is lost now is told by the next one that looks");
  }
  if (receives) settling.receive(call.room, call.lease);
  const std::int64_t asked_end_ms = asked_ms + call.lease.count();
  if (renews || !some) lease_end_ms_ = asked_end_ms;
  Hand hand;
  hand.lease_left = Duration{lease_end_ms_ - asked_ms};
  if (settling.ops().empty()) return hand;

  Result<Answer> answer = commit(settling);
  if (!answer) return std::move(answer).error();
  log_ahead_ms_ = to_ms(answer->time) - asked_ms;
  read_answer(settling, *answer, hand);
  hear_claims(call, *answer, hand);
  if (receives) {
    const Status handed_out = hand_out(*answer, hand);
    if (!handed_out) {
      release_claims(call);  // After an error nothing begins.
      forget();
      return handed_out.error();
    }
  }
  tidy();
  return hand;
}

void StreamSource::tidy() {
  const std::int64_t now = clock_.steady_ms();
  if (!settings_.delivered_kept || now < tidy_at_ms_) return;
  tidy_at_ms_ = now + kTidyEvery.count();
  const Time before = time_from_ms(log_now_ms()) - *settings_.delivered_kept;
  const Status tidied = trim_delivered(store_, settings_.stream, settings_.consumer, before);
  if (!tidied && log_) log_(tidied.error().text());
}

Result<Answer> StreamSource::commit(const Settling& settling) {
  Result<Answer> answer = store_.commit({.ops = settling.ops(), .mode = Mode::kEach});
  if (answer) {
    if (attempt_log_) attempt_log_->hear(*answer);
    return answer;
  }
  if (attempt_log_) attempt_log_->hear_nothing(answer.error().code);
  if (claims_) claims_->hear_nothing(answer.error().code);
  forget();
  return answer;
}

// What was settled or renewed and is somebody else's by now.
void StreamSource::read_answer(const Settling& settling, const Answer& answer, Hand& hand) {
  for (std::size_t i = 0; i < answer.verdicts.size(); ++i) {
    const Verdict& verdict = answer.verdicts[i];
    const auto* refused = std::get_if<Refused>(&verdict);
    if (refused != nullptr && !(attempt_log_ && attempt_log_->said(i))) {
      if (log_) log_(base::format("stream '{}': {}", settings_.stream, refused->error.text()));
    }
    const HandoutNumber number = settling.extended(i);
    if (number == 0 || std::holds_alternative<Renewed>(verdict)) continue;
    release(number);
    hand.lost.push_back(number);
  }
  for (const auto& [place, sequence, tries] : settling.refusable()) {
    if (std::holds_alternative<Refused>(answer.verdicts[place])) remember(sequence, tries);
  }
}

void StreamSource::release(HandoutNumber number) {
  const auto at = held_.find(number);
  if (at == held_.end()) return;
  held_bytes_ -= at->second.bytes;
  held_.erase(at);
}

void StreamSource::remember(Sequence sequence, const Tries& tries) {
  if (remembered_.size() >= kRememberedMax) remembered_.clear();
  remembered_[sequence.value] = tries;
}

Status StreamSource::hand_out(Answer& answer, Hand& hand) {
  for (const std::size_t back : {2U, 1U}) {  // The consumer, and what it receives.
    const Verdict& verdict = answer.verdicts[answer.verdicts.size() - back];
    if (const auto* refused = std::get_if<Refused>(&verdict)) {
      stream_uid_.reset();
      return refused->error;
    }
  }
  auto* const received = &std::get<Received>(answer.verdicts.back());
  if (received->next_due != Time::max()) {
    hand.next_due = std::max(received->next_due - answer.time, Duration{0});
  }
  if (received->deliveries.empty()) return Ok{};
  HAPAX_CHECK(check_stream());
  hand.more = true;
  for (Delivery& delivery : received->deliveries) {
    HAPAX_TRY(const Tries tries, find_tries(delivery));
    const Receipt receipt{delivery.record.sequence, delivery.token};
    Held held{receipt, tries, to_ms(answer.time), delivery.record.payload.size()};
    HAPAX_TRY(const bool held_back, is_held_back(delivery, held));
    if (held_back || has_expired(delivery, held, answer.time)) continue;
    Outgoing record = outgoing_of(delivery, tries);
    record.replay += held.retries;
    const std::optional<std::uint32_t> endpoint = route_ ? route_(record) : 0;
    if (!endpoint) {
      ++passed_over_;
      unwanted_.push_back(receipt);
      continue;
    }
    const HandoutNumber number = ++numbers_;
    held_bytes_ += held.bytes;
    held_.emplace(number, std::move(held));
    hand.records.push_back({number, std::move(record), *endpoint});
  }
  return Ok{};
}

// A stream that was deleted and made again counts its sequences from 1 again: its records are not
// those that went out under the same keys before. Asked after the records came, so they are of the
// stream that is named here.
Status StreamSource::check_stream() {
  HAPAX_TRY(const Records found, store_.read({.stream = settings_.stream, .max = 1}));
  if (found.stream_uid == stream_uid_) return Ok{};
  stream_uid_.reset();
  return Error{Errc::kUnavailable,
               base::format("stream '{}' was deleted and made again", settings_.stream)};
}

Outgoing StreamSource::outgoing_of(Delivery& delivery, const Tries& tries) const {
  Record& from = delivery.record;
  Outgoing record;
  record.place = static_cast<std::int64_t>(from.sequence.value);
  if (auto key = key_of_(from, *stream_uid_)) {
    record.id = *std::move(key);
  } else {
    record.id = from.id.empty() ? base::format("{}", from.sequence.value) : from.id;
    record.flaw = key.error().detail;
  }
  record.time = from.time;
  record.attempt = tries.failed + 1;
  record.replay = from.lineage ? from.lineage->redrives : 0;
  record.key = std::move(from.group);
  record.payload = std::move(from.payload);
  bool typed = false;  // As type_of() has it: the first one counts, also if it is empty.
  for (auto& [name, value] : from.headers) {
    if (name == kTypeHeader && !std::exchange(typed, true)) {
      record.type = std::move(value);
    } else {
      record.headers.emplace_back(std::move(name), std::move(value));
    }
  }
  return record;
}

// Z10. Registers can be written by others: what makes no sense does not count.
Result<StreamSource::Tries> StreamSource::find_tries(const Delivery& delivery) {
  if (delivery.attempt <= 1) return Tries{};
  if (const auto at = remembered_.find(delivery.record.sequence.value); at != remembered_.end()) {
    return at->second;
  }
  HAPAX_TRY(const auto found, store_.find_register(register_of(delivery.record.sequence)));
  if (!found) return Tries{};
  Tries tries;
  std::string_view text = found->value;
  const bool whole = read_number(text, tries.failed) && text.starts_with(' ') &&
                     (text.remove_prefix(1), read_number(text, tries.first_ms)) && text.empty();
  const bool sane = whole && tries.failed >= 1 && tries.failed < limits::kAttemptsMax &&
                    tries.first_ms >= 0 && tries.first_ms <= log_now_ms();
  return sane ? tries : Tries{};
}

std::string StreamSource::register_of(Sequence sequence) const {
  return base::format("{}/{}/{}", settings_.attempts, *stream_uid_, sequence.value);
}

// --- settle ----------------------------------------------------------------------------------

void StreamSource::settle(Settling& settling, const Settlement& settlement) {
  const auto at = held_.find(settlement.number);
  if (at == held_.end()) return;  // Lost meanwhile: it is somebody else's.
  const Held held = at->second;
  release(settlement.number);
  remembered_.erase(held.receipt.sequence.value);
  const bool unsent = settlement.kind == Kind::kNotSent || settlement.kind == Kind::kHeld;
  const bool failed = !unsent && settlement.kind != Kind::kDelivered;
  if (failed && held.begun() && claims_->terms().one_attempt()) {
    return give_up(settling, held,
                   settlement.may_have_arrived ? unknown_outcome(held.key, settlement.reason)
                                               : settlement.reason);
  }
  switch (settlement.kind) {
    case Kind::kDelivered:
      settling.ack(held.receipt);
      break;
    case Kind::kRetry:
      return retry(settling, held, settlement);
    case Kind::kDead:
      return give_up(settling, held, settlement.reason);
    case Kind::kUnknown:
      if (held.begun() && doubts_) return ask_later(settling, held, settlement);
      if (held.begun() && claims_->terms().in_doubt == AttemptTerms::InDoubt::kPark) {
        return give_up(settling, held, unknown_outcome(held.key, settlement.reason));
      }
      return settling.nack(held.receipt, settlement.after, settlement.reason);
    case Kind::kDeferred:
      return settling.nack(held.receipt, settlement.after, settlement.reason);
    case Kind::kHeld:
    case Kind::kNotSent:
      return settling.nack(held.receipt, settlement.after, settlement.reason);
  }
  if (held.tries.failed > 0) settling.forget_tries(register_of(held.receipt.sequence));
}

void StreamSource::give_up(Settling& settling, const Held& held, const Tries& tries,
                           std::string_view reason) {
  if (blocks_.blocks(held.group)) {
    const bool noted = held.tries.failed > 0;
    given_up_.push_back({blocking(held, tries, reason),
                         noted ? register_of(held.receipt.sequence) : std::string()});
    return;
  }
  settling.give_up(held.receipt, tries, reason);
  if (held.tries.failed > 0) settling.forget_tries(register_of(held.receipt.sequence));
}

void StreamSource::retry(Settling& settling, const Held& held, const Settlement& settlement) {
  Tries tries = held.tries;
  if (tries.failed++ == 0) tries.first_ms = held.handed_out_ms;
  const std::int64_t spent_ms = log_now_ms() - tries.first_ms;
  if (Duration{spent_ms} + settlement.after > settings_.give_up_after) {
    return give_up(settling, held, tries,
                   base::format("given up after {} ms and attempts ({}): {}", spent_ms,
                                tries.failed, settlement.reason));
  }
  settling.nack(held.receipt, settlement.after, settlement.reason);
  settling.note_tries(held.receipt.sequence, tries, register_of(held.receipt.sequence));
}

void StreamSource::renew(Settling& settling, const TakeCall& call, bool renews) {
  if (renews) {
    for (const auto& [number, held] : held_) settling.extend(number, held.receipt, call.lease);
  }
  if (!claims_) return;
  claims_->speak(call.beginning, renews, call.lease,
                 [&](const Op& op) { return settling.say(op); });
}

// Z22: behind all that is settled, so that a dead letter has what room there is.
void StreamSource::tell_log(Settling& settling) {
  if (!attempt_log_) return;
  attempt_log_->speak([&](const Op& op) { return settling.say(op); });
}

Status StreamSource::give_back(std::span<const Settlement> settled) {
  end_attempts(settled);
  if (!stream_uid_ && !claims_) return Ok{};
  if (claims_) {
    ignore(claims_->find_unheard(store_), "what is not found lapses");
    ignore(resolve_doubts(), "what is not resolved is handed out again");
  }
  Settling settling(settings_);
  for (const Settlement& settlement : settled) settle(settling, settlement);
  settle_leftovers(settling);
  ignore(settle_blocks(), "what does not block yet is handed out again");
  renew(settling, {}, false);
  for (const auto& [number, held] : held_) {
    settling.nack(held.receipt, Duration{0}, "the sender stopped before it was sent");
  }
  held_.clear();
  held_bytes_ = 0;
  tell_log(settling);
  if (settling.ops().empty()) return Ok{};
  HAPAX_TRY(Answer answer, commit(settling));
  Hand nothing;
  read_answer(settling, answer, nothing);
  hear_claims({}, answer, nothing);
  return Ok{};
}

void StreamSource::forget() {
  held_.clear();
  held_bytes_ = 0;
  unwanted_.clear();
  overruled_.clear();
  given_up_.clear();
}

}  // namespace hapax::delivery
