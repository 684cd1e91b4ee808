#include "delivery/stager.h"

#include <algorithm>
#include <limits>

#include <hapax/limits.h>

#include "base/assert.h"
#include "base/format.h"
#include "relay/headers.h"

namespace hapax::delivery {

namespace {

constexpr Duration kLookAgain{30'000};  // a store that does not tell of news is asked so often
constexpr Duration kTransformRest{500};
// Of one record; with room for what a commit has beside it.
constexpr std::size_t kOutputsMax = 50'000;
constexpr std::size_t kOutputBytesMax = limits::kCommitBytesMax * 3 / 4;

std::size_t size_of(const StagedRecord& record) {
  std::size_t size = record.payload.size() + record.id.size() + record.group.size();
  for (const auto& [name, value] : record.headers) size += name.size() + value.size();
  return size;
}

}  // namespace

void Stager::Arrivals::put(Arrival arrival) {
  const base::MutexLock lock(mutex);
  waiting.push_back(std::move(arrival));
}

std::vector<Stager::Arrivals::Arrival> Stager::Arrivals::take() {
  const base::MutexLock lock(mutex);
  return std::exchange(waiting, {});
}

// The operations of one commit and what they refer to: first those of records, then a receive.
class Stager::Batch {
 public:
  Batch(const StagerSettings& settings, const KeyBlocks& blocks, std::uint64_t stream_uid, Time now)
      : settings_(settings), blocks_(blocks), stream_uid_(stream_uid), now_(now) {}

  void add(const Held& held) {
    ++records_;
    if (held.lost) return;
    if (held.blocks) return add(*held.blocks);
    if (!held.flaw.empty()) {
      ops_.push_back(Nack{.stream = settings_.source,
                          .consumer = settings_.consumer,
                          .receipt = held.receipt,
                          .reason = held.flaw,
                          .last = true});
      return;
    }
    for (const StagedRecord& output : held.staged) add(output);
    ops_.push_back(Ack{settings_.source, settings_.consumer, held.receipt});
    bytes_ += held.bytes;
  }
  // A receive would make a consumer that is not there with settings of its own.
  void receive(std::size_t max) {
    receive_ = ops_.size();
    ops_.push_back(CreateConsumer{settings_.source, settings_.consumer,
                                  workflow_consumer(settings_.dead_letters)});
    ops_.push_back(Receive{settings_.source, settings_.consumer,
                           static_cast<std::uint32_t>(std::min(max, limits::kReceiveMax)),
                           settings_.lease, settings_.owner});
  }

  [[nodiscard]] const std::vector<Op>& ops() const { return ops_; }
  [[nodiscard]] std::size_t records() const { return records_; }
  [[nodiscard]] bool receives() const { return receive_.has_value(); }
  [[nodiscard]] bool is_of_receive(std::size_t place) const {
    return receive_ && place >= *receive_;
  }
  [[nodiscard]] bool has_room_for(const Held& held) const {
    const std::size_t ops = ops_.size() + held.staged.size();
    return records_ == 0 || (bytes_ + held.bytes <= settings_.commit_bytes && ops <= kOutputsMax);
  }

 private:
  void add(const BlockedRecord& record) {
    const bool over = blocks_.is_over(record, now_);
    for (const Op& op : over ? blocks_.end(record, stream_uid_, kept_)
                             : blocks_.hold(record, stream_uid_, now_, kept_)) {
      ops_.push_back(op);
    }
  }
  void add(const StagedRecord& output) {
    std::vector<Header>& headers = headers_.emplace_back();
    for (const auto& [name, value] : output.headers) headers.push_back({name, value});
    Append append{
        .stream = output.stream, .payload = output.payload, .id = output.id, .headers = headers};
    if (!output.group.empty()) append.group = output.group;
    ops_.push_back(append);
  }

  const StagerSettings& settings_;
  const KeyBlocks& blocks_;
  const std::uint64_t stream_uid_;
  const Time now_;
  std::vector<Op> ops_;
  KeyBlocks::Kept kept_;
  std::deque<std::vector<Header>> headers_;  // they lie still
  std::optional<std::size_t> receive_{};
  std::size_t records_ = 0;
  std::size_t bytes_ = 0;
};

Stager::Stager(Store& store, ports::Clock& clock, StagerSettings settings, Compose compose,
               Transforming* transform, Log log)
    : store_(store),
      clock_(clock),
      settings_(std::move(settings)),
      compose_(std::move(compose)),
      transform_(transform),
      log_(std::move(log)),
      blocks_(store, {settings_.source, settings_.consumer, settings_.blocked, settings_.hold}),
      keeping_(store, {settings_.source, settings_.consumer, settings_.keeping}, log_),
      arrivals_(std::make_shared<Arrivals>()),
      news_(store) {}

Stager::~Stager() = default;

Status Stager::open() {
  if (stream_uid_) return Ok{};
  forget();
  if (settings_.outbox) HAPAX_CHECK(ensure_stream(store_, *settings_.outbox));
  HAPAX_TRY(const std::uint64_t stream_uid, find_source(store_, settings_.source));
  HAPAX_CHECK(keeping_.open(stream_uid));
  stream_uid_ = stream_uid;
  return Ok{};
}

Result<Duration> Stager::step() {
  HAPAX_CHECK(open());
  news_.watch(settings_.source, settings_.consumer);
  collect();
  begin_transforms();
  HAPAX_CHECK(renew());
  HAPAX_CHECK(stage());
  begin_transforms();
  tidy_streams();
  return idle_for();
}

void Stager::wait(Duration most) {
  if (news_.wait(most)) next_due_ms_ = 0;
}

// --- transform -------------------------------------------------------------------------------

void Stager::collect() {
  for (auto& [number, payload_bytes, outcome] : arrivals_->take()) {
    --under_way_;
    under_way_bytes_ -= payload_bytes;
    if (number < first_number_) continue;  // Forgotten, or somebody else's.
    Held& held = held_[number - first_number_];
    if (!outcome) {
      held.state = Held::State::kWaits;
      ++waiting_;
      try_later(outcome.error());
    } else if (auto* failed = std::get_if<NotReshaped>(&*outcome)) {
      give_up(held, std::move(failed->reason));
    } else {
      told_trouble_ = false;
      finish(held, std::get<std::vector<Reshaped>>(*std::move(outcome)));
    }
  }
}

// In the order of the records, so that what is held is never behind something that cannot begin.
void Stager::begin_transforms() {
  if (clock_.steady_ms() < transform_at_ms_) return;
  for (std::size_t place = 0; waiting_ > 0 && place < held_.size(); ++place) {
    if (held_[place].state != Held::State::kWaits) continue;
    if (!may_begin(place)) return;
    begin(place);
    if (held_[place].state == Held::State::kWaits) return;
  }
}

bool Stager::may_begin(std::size_t place) const {
  if (transform_ != nullptr && under_way_ >= settings_.under_way_max) return false;
  return place == 0 || staged_bytes_ + under_way_bytes_ < settings_.bytes_max;
}

void Stager::begin(std::size_t place) {
  Held& held = held_[place];
  --waiting_;
  if (transform_ == nullptr) {
    std::vector<Reshaped> only;
    only.push_back({.payload = std::move(held.record.payload)});
    return finish(held, std::move(only));
  }
  ++under_way_;
  under_way_bytes_ += held.payload_bytes;
  held.state = Held::State::kUnderWay;
  const auto done = [arrivals = arrivals_, nudge = news_.nudger(), number = first_number_ + place,
                     bytes = held.payload_bytes](Result<ReshapeOutcome> outcome) {
    arrivals->put({number, bytes, std::move(outcome)});
    nudge();
  };
  const Status begun = transform_->start(held.record.payload, held.record.time, done);
  if (begun) return;
  --under_way_;
  under_way_bytes_ -= held.payload_bytes;
  ++waiting_;
  held.state = Held::State::kWaits;
  try_later(begun.error());
}

void Stager::finish(Held& held, std::vector<Reshaped> outputs) {
  auto staged = compose_(held.record, *stream_uid_, std::move(outputs));
  if (!staged) return give_up(held, staged.error().detail);
  held.bytes = 0;
  for (const StagedRecord& output : *staged) held.bytes += size_of(output);
  if (staged->size() > kOutputsMax || held.bytes > kOutputBytesMax) {
    return give_up(held, base::format("makes {} records of {} bytes together; one record may make "
                                      "{} of {}",
                                      staged->size(), held.bytes, kOutputsMax, kOutputBytesMax));
  }
  held.staged = *std::move(staged);
  held.state = Held::State::kDone;
  staged_bytes_ += held.bytes;
}

// G3
void Stager::give_up(Held& held, std::string reason) {
  staged_bytes_ -= std::exchange(held.bytes, 0);
  held.staged.clear();
  held.flaw = relay::stored_reason(reason.empty() ? "it cannot be transformed" : reason);
  held.state = Held::State::kDone;
  if (!blocks_.blocks(held.record.group)) return;
  held.blocks = BlockedRecord{.receipt = held.receipt,
                              .key = held.record.group,
                              .since = log_now(),
                              .attempts = 1,
                              .retries = held.retries,
                              .reason = held.flaw};
}

// A record that is handed out although it blocks: its lease has ended.
Status Stager::hold_back(Held& held, std::uint32_t handed_out) {
  if (handed_out <= 1 || held.record.group.empty()) return Ok{};
  HAPAX_TRY(auto blocked, blocks_.find(*stream_uid_, held.receipt.sequence));
  if (!blocked) return Ok{};
  held.retries = blocked->retries;
  if (!blocked->waits) return Ok{};
  blocked->receipt = held.receipt;
  held.flaw = blocked->reason;
  held.blocks = std::move(blocked);
  held.state = Held::State::kDone;
  return Ok{};
}

// Told once, however many records wait for it.
void Stager::try_later(const Error& error) {
  ++counts_.again;
  transform_at_ms_ = clock_.steady_ms() + kTransformRest.count();
  if (std::exchange(told_trouble_, true) || !log_) return;
  log_(base::format("the transform does not run, and is tried again: {}", error.text()));
}

// --- store -----------------------------------------------------------------------------------

// Leases are renewed together, when a third of the time is over.
Status Stager::renew() {
  const std::int64_t now = clock_.steady_ms();
  if (held_.empty() || lease_end_ms_ - now > settings_.lease.count() * 2 / 3) return Ok{};
  std::vector<Op> ops;
  for (const Held& held : held_) {
    ops.push_back(Extend{settings_.source, settings_.consumer, held.receipt, settings_.lease});
  }
  auto answer = store_.commit({.ops = ops, .mode = Mode::kEach});
  if (!answer) {
    forget();
    return std::move(answer).error();
  }
  for (std::size_t i = 0; i < held_.size(); ++i) {
    if (held_[i].lost || std::holds_alternative<Renewed>(answer->verdicts[i])) continue;
    ++counts_.lost;
    held_[i].lost = true;
  }
  lease_end_ms_ = now + settings_.lease.count();
  return Ok{};
}

// G2
std::size_t Stager::done_in_front() const {
  std::size_t count = 0;
  while (count < held_.size()) {
    const Held& held = held_[count];
    if (held.state != Held::State::kDone && !held.lost) break;
    ++count;
  }
  return count;
}

bool Stager::may_receive() const {
  return one_by_one_ == 0 && held_.size() < settings_.held_max && held_bytes_ < settings_.bytes_max;
}

// G1
Status Stager::stage() {
  Batch batch(settings_, blocks_, *stream_uid_, log_now());
  const std::size_t most = one_by_one_ > 0 ? 1 : held_.size();
  const std::size_t done = std::min(done_in_front(), most);
  while (batch.records() < done && batch.has_room_for(held_[batch.records()])) {
    batch.add(held_[batch.records()]);
  }
  const std::int64_t asked_ms = clock_.steady_ms();
  // An acknowledgement lets the next record of its group come.
  const bool may_come = batch.records() > 0 || asked_ms >= next_due_ms_;
  if (may_come && may_receive()) {
    ignore(keeping_.notice(log_now()), "what is lost now is told by the next one that looks");
    batch.receive(settings_.held_max - held_.size());
  }
  Answer answer;
  if (!batch.ops().empty()) {
    auto answered = store_.commit({.ops = batch.ops()});
    if (!answered) {
      forget();  // Nobody knows what counts; what was not acknowledged comes again.
      return std::move(answered).error();
    }
    answer = *std::move(answered);
    if (!answer.committed) return judge_refusal(batch, answer);
    log_ahead_ms_ = to_ms(answer.time) - asked_ms;
  }
  release_staged(batch.records(), answer);
  return batch.receives() ? admit(answer, asked_ms) : Status(Ok{});
}

// Nothing of the commit happened. Whose fault it is shows when each record is committed alone.
Status Stager::judge_refusal(const Batch& batch, const Answer& answer) {
  const auto at = std::find_if(
      answer.verdicts.begin(), answer.verdicts.end(),
      [](const Verdict& verdict) { return !std::holds_alternative<NotApplied>(verdict); });
  HAPAX_ASSERT(at != answer.verdicts.end(), "a commit is refused for one of its operations");
  const auto place = static_cast<std::size_t>(at - answer.verdicts.begin());
  if (batch.is_of_receive(place)) {
    stream_uid_.reset();
    const auto* refused = std::get_if<Refused>(&*at);
    return refused != nullptr ? refused->error
                              : Error{Errc::kPreconditionFailed, std::string(word_of(*at))};
  }
  if (batch.records() == 1 && !batch.receives()) {
    return judge_alone(held_.front(), *at, std::holds_alternative<Append>(batch.ops()[place]));
  }
  one_by_one_ = batch.records();
  return Ok{};
}

Status Stager::judge_alone(Held& held, const Verdict& verdict, bool of_output) {
  if (std::holds_alternative<Stale>(verdict)) {
    ++counts_.lost;
    held.lost = true;
    return Ok{};
  }
  const auto* refused = std::get_if<Refused>(&verdict);
  if (of_output && refused != nullptr && is_of_the_record(refused->error)) {
    give_up(held, refused->error.text());
    return Ok{};
  }
  if (of_output && std::holds_alternative<Conflict>(verdict)) {
    give_up(held,
            "something else was made of this record before, under the same key: its transform was "
            "changed, or its id was used twice");
    return Ok{};
  }
  if (refused != nullptr) return refused->error;
  return Error{Errc::kPreconditionFailed,
               base::format("a record made of record {} of stream '{}' was not stored: {}",
                            held.receipt.sequence.value, settings_.source, word_of(verdict))};
}

void Stager::release_staged(std::size_t count, const Answer& answer) {
  for (const Verdict& verdict : answer.verdicts) {
    if (std::holds_alternative<Appended>(verdict)) ++counts_.staged;
    if (std::holds_alternative<Duplicate>(verdict)) ++counts_.repeated;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Held& held = held_.front();
    if (!held.lost && !held.flaw.empty()) tell_given_up(held);
    if (!held.lost && held.flaw.empty() && held.staged.empty()) ++counts_.filtered;
    release_front();
  }
  one_by_one_ -= std::min(one_by_one_, count);
}

void Stager::tell_given_up(const Held& held) {
  ++counts_.dead;
  if (!log_) return;
  const bool waits = held.blocks && !blocks_.is_over(*held.blocks, log_now());
  const std::string what =
      waits ? base::format("blocks its key '{}'", held.record.group) : "is a dead letter";
  log_(base::format("record {} of stream '{}' {}: {}", held.receipt.sequence.value,
                    settings_.source, what, held.flaw));
}

void Stager::release_front() {
  const Held& held = held_.front();
  held_bytes_ -= held.payload_bytes;
  staged_bytes_ -= held.bytes;
  waiting_ -= held.state == Held::State::kWaits ? 1 : 0;
  held_.pop_front();
  ++first_number_;
}

// A stream that was made again under its name counts from 1 again: its records are not those that
// had the same keys before. Asked after they came, so they are of the stream that is named here.
Status Stager::admit(Answer& answer, std::int64_t asked_ms) {
  auto& received = std::get<Received>(answer.verdicts.back());
  if (received.deliveries.empty()) {
    const bool comes = received.next_due != Time::max();
    const Duration due = comes ? received.next_due - answer.time : kLookAgain;
    next_due_ms_ = asked_ms + std::clamp(due, Duration{1}, kLookAgain).count();
    return Ok{};
  }
  const auto uid = find_source(store_, settings_.source);
  if (!uid || *uid != *stream_uid_) {
    stream_uid_.reset();
    if (!uid) return uid.error();
    return Error{Errc::kUnavailable,
                 base::format("stream '{}' was deleted and made again", settings_.source)};
  }
  if (held_.empty()) lease_end_ms_ = asked_ms + settings_.lease.count();
  next_due_ms_ = 0;
  for (Delivery& delivery : received.deliveries) {
    const Receipt receipt{delivery.record.sequence, delivery.token};
    const std::size_t bytes = delivery.record.payload.size();
    Held held{.receipt = receipt, .record = std::move(delivery.record), .payload_bytes = bytes};
    if (Status known = hold_back(held, delivery.attempt); !known) {
      forget();
      return known;
    }
    if (auto reason = keeping_.expired(held.record.time, answer.time);
        reason && held.retries == 0 && !held.blocks) {
      held.flaw = *std::move(reason);  // Z24
      held.state = Held::State::kDone;
    }
    held_bytes_ += bytes;
    waiting_ += held.state == Held::State::kWaits ? 1 : 0;
    ++counts_.taken;
    held_.push_back(std::move(held));
  }
  return Ok{};
}

Status Stager::stop() {
  std::vector<Op> ops;
  for (const Held& held : held_) {
    if (held.lost) continue;
    ops.push_back(Nack{.stream = settings_.source,
                       .consumer = settings_.consumer,
                       .receipt = held.receipt,
                       .reason = "the sender stopped before it was transformed"});
  }
  forget();
  if (ops.empty()) return Ok{};
  HAPAX_TRY(const Answer answer, store_.commit({.ops = ops, .mode = Mode::kEach}));
  return Ok{};
}

void Stager::forget() {
  first_number_ += held_.size();
  held_.clear();
  held_bytes_ = staged_bytes_ = 0;
  waiting_ = one_by_one_ = 0;
  next_due_ms_ = 0;
}

void Stager::tidy_streams() {
  const std::int64_t now = clock_.steady_ms();
  if (now < tidy_at_ms_) return;
  tidy_at_ms_ = now + kTidyEvery.count();
  if (settings_.outbox) tidy(settings_.outbox->name);
  if (settings_.owns_source) tidy(settings_.source);
}

void Stager::tidy(const std::string& stream) {
  const Status tidied =
      trim_delivered(store_, stream, settings_.consumer, log_now() - settings_.delivered_kept);
  if (!tidied && log_) log_(tidied.error().text());
}

Duration Stager::idle_for() {
  const std::int64_t now = clock_.steady_ms();
  if (done_in_front() > 0) return Duration{0};
  std::int64_t at = now + kLookAgain.count();
  if (!held_.empty()) at = lease_end_ms_ - settings_.lease.count() * 2 / 3;
  if (waiting_ > 0 && transform_at_ms_ > now) at = std::min(at, transform_at_ms_);
  if (may_receive()) at = std::min(at, next_due_ms_);
  return Duration{std::max<std::int64_t>(at - now, 0)};
}

}  // namespace hapax::delivery
