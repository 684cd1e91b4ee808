#include "delivery/stream_source.h"

#include <algorithm>
#include <charconv>
#include <deque>

#include <hapax/limits.h>

#include "base/format.h"
#include "relay/headers.h"

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

// The operations of one commit, the texts they refer to, and what each was for.
class StreamSource::Settling {
 public:
  Settling(const StreamSourceSettings& settings) : settings_(settings) {}

  void ack(Receipt receipt) { add(0, Ack{settings_.stream, settings_.consumer, receipt}); }
  void nack(Receipt receipt, Duration delay, std::string_view reason) {
    add(0, Nack{.stream = settings_.stream,
                .consumer = settings_.consumer,
                .receipt = receipt,
                .delay = std::clamp(delay, Duration{0}, limits::kDelayMax),
                .reason = keep(relay::stored_reason(reason))});
  }
  void give_up(Receipt receipt, const Tries& tries, std::string_view reason) {
    refusable_.push_back({ops_.size(), receipt.sequence, tries});
    add(0, Nack{.stream = settings_.stream,
                .consumer = settings_.consumer,
                .receipt = receipt,
                .reason = keep(relay::stored_reason(reason)),
                .last = true});
  }
  void extend(HandoutNumber number, Receipt receipt, Duration lease) {
    add(number, Extend{settings_.stream, settings_.consumer, receipt, lease});
  }
  void note_tries(Sequence sequence, const Tries& tries, std::string name) {
    refusable_.push_back({ops_.size(), sequence, tries});
    std::string value = base::format("{} {}", tries.failed, tries.first_ms);
    add(0, Set{.name = keep(std::move(name)),
               .value = keep(std::move(value)),
               .mode = SetMode::kAlways,
               .expiry = {.kind = Expiry::Kind::kAfter, .after = settings_.attempts_kept}});
  }
  void forget_tries(std::string name) { add(0, Unset{.name = keep(std::move(name))}); }
  // A receive would make a consumer that is not there with settings of its own: after the stream
  // was deleted and made again.
  void receive(std::uint32_t room, Duration lease) {
    add(0, CreateConsumer{settings_.stream, settings_.consumer,
                          workflow_consumer(settings_.dead_letters)});
    const auto max = std::min<std::uint32_t>(room, limits::kReceiveMax);
    add(0, Receive{settings_.stream, settings_.consumer, max, lease, settings_.owner});
  }

  [[nodiscard]] const std::vector<Op>& ops() const { return ops_; }
  // Operations that a quota may refuse, and what must be known then.
  struct Refusable {
    std::size_t place;
    Sequence sequence;
    Tries tries;
  };
  [[nodiscard]] const std::vector<Refusable>& refusable() const { return refusable_; }
  // Which hand-out an extend is for; 0: something else.
  [[nodiscard]] HandoutNumber extended(std::size_t place) const { return extended_[place]; }

 private:
  void add(HandoutNumber extended, Op op) {
    ops_.push_back(op);
    extended_.push_back(extended);
  }
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  const StreamSourceSettings& settings_;
  std::vector<Op> ops_;
  std::vector<HandoutNumber> extended_;
  std::vector<Refusable> refusable_;
  std::deque<std::string> texts_;  // they lie still
};

StreamSource::StreamSource(Store& store, ports::Clock& clock, StreamSourceSettings settings,
                           KeyOf key_of, Route route, Log log)
    : store_(store),
      clock_(clock),
      settings_(std::move(settings)),
      key_of_(std::move(key_of)),
      route_(std::move(route)),
      log_(std::move(log)),
      news_(store) {}

Status StreamSource::open() {
  if (settings_.own) HAPAX_CHECK(ensure_stream(store_, {settings_.stream, *settings_.own}));
  HAPAX_TRY(stream_uid_, find_source(store_, settings_.stream));
  return Ok{};
}

// --- take ------------------------------------------------------------------------------------

Result<Hand> StreamSource::take(const TakeCall& call) {
  if (!stream_uid_) {
    forget();
    HAPAX_CHECK(open());
  }
  news_.watch(settings_.stream, settings_.consumer);
  Settling settling(settings_);
  for (const Settlement& settlement : call.settled) settle(settling, settlement);
  for (const Receipt receipt : std::exchange(unwanted_, {})) settling.ack(receipt);
  const std::int64_t asked_ms = clock_.steady_ms();
  // Leases are renewed together, when a third of the time is over.
  const bool renews = !held_.empty() && lease_end_ms_ - asked_ms <= call.lease.count() * 2 / 3;
  if (renews) renew(settling, call.lease);
  const bool receives = call.room > 0 && held_bytes_ < kHeldBytesMax;
  if (receives) settling.receive(call.room, call.lease);
  const std::int64_t asked_end_ms = asked_ms + call.lease.count();
  if (renews || held_.empty()) lease_end_ms_ = asked_end_ms;
  Hand hand;
  hand.lease_left = Duration{lease_end_ms_ - asked_ms};
  if (settling.ops().empty()) return hand;

  Result<Answer> answer = commit(settling);
  if (!answer) return std::move(answer).error();
  log_ahead_ms_ = to_ms(answer->time) - asked_ms;
  read_answer(settling, *answer, hand);
  if (receives) {
    const Status handed_out = hand_out(*answer, hand);
    if (!handed_out) {
      forget();
      return handed_out.error();
    }
  }
  return hand;
}

Result<Answer> StreamSource::commit(const Settling& settling) {
  Result<Answer> answer = store_.commit({.ops = settling.ops(), .mode = Mode::kEach});
  if (!answer) forget();
  return answer;
}

// What was settled or renewed and is somebody else's by now.
void StreamSource::read_answer(const Settling& settling, const Answer& answer, Hand& hand) {
  for (std::size_t i = 0; i < answer.verdicts.size(); ++i) {
    const Verdict& verdict = answer.verdicts[i];
    if (const auto* refused = std::get_if<Refused>(&verdict)) {
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
    Outgoing record = outgoing_of(delivery, tries);
    const std::optional<std::uint32_t> endpoint = route_ ? route_(record) : 0;
    if (!endpoint) {
      ++passed_over_;
      unwanted_.push_back(receipt);
      continue;
    }
    const HandoutNumber number = ++numbers_;
    held_bytes_ += record.payload.size();
    held_.emplace(number, Held{receipt, tries, to_ms(answer.time), record.payload.size()});
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
  record.id = key_of_(from, *stream_uid_);
  record.time = from.time;
  record.attempt = tries.failed + 1;
  record.replay = from.lineage ? from.lineage->redrives : 0;
  record.key = std::move(from.group);
  record.payload = std::move(from.payload);
  for (auto& [name, value] : from.headers) {
    if (name == kTypeHeader && record.type.empty()) {
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
  switch (settlement.kind) {
    case Kind::kDelivered:
      settling.ack(held.receipt);
      break;
    case Kind::kRetry:
      return retry(settling, held, settlement);
    case Kind::kDead:
      settling.give_up(held.receipt, held.tries, settlement.reason);
      break;
    case Kind::kDeferred:
      return settling.nack(held.receipt, settlement.after, settlement.reason);
    case Kind::kUnknown:  // At least once: it goes again under its key.
    case Kind::kHeld:
    case Kind::kNotSent:
      return settling.nack(held.receipt, Duration{0}, settlement.reason);
  }
  if (held.tries.failed > 0) settling.forget_tries(register_of(held.receipt.sequence));
}

void StreamSource::retry(Settling& settling, const Held& held, const Settlement& settlement) {
  Tries tries = held.tries;
  if (tries.failed++ == 0) tries.first_ms = held.handed_out_ms;
  const std::int64_t spent_ms = log_now_ms() - tries.first_ms;
  if (Duration{spent_ms} + settlement.after > settings_.give_up_after) {
    settling.give_up(held.receipt, tries,
                     base::format("given up after {} ms and attempts ({}): {}", spent_ms,
                                  tries.failed, settlement.reason));
    if (held.tries.failed > 0) settling.forget_tries(register_of(held.receipt.sequence));
    return;
  }
  settling.nack(held.receipt, settlement.after, settlement.reason);
  settling.note_tries(held.receipt.sequence, tries, register_of(held.receipt.sequence));
}

void StreamSource::renew(Settling& settling, Duration lease) {
  for (const auto& [number, held] : held_) settling.extend(number, held.receipt, lease);
}

Status StreamSource::give_back(std::span<const Settlement> settled) {
  if (!stream_uid_) return Ok{};
  Settling settling(settings_);
  for (const Settlement& settlement : settled) settle(settling, settlement);
  for (const Receipt receipt : std::exchange(unwanted_, {})) settling.ack(receipt);
  for (const auto& [number, held] : held_) {
    settling.nack(held.receipt, Duration{0}, "the sender stopped before it was sent");
  }
  held_.clear();
  held_bytes_ = 0;
  if (settling.ops().empty()) return Ok{};
  HAPAX_TRY(const Answer answer, commit(settling));
  Hand nothing;
  read_answer(settling, answer, nothing);
  return Ok{};
}

void StreamSource::forget() {
  held_.clear();
  held_bytes_ = 0;
  unwanted_.clear();
}

}  // namespace hapax::delivery
