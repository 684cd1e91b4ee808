// For tests of the core as a whole: random commits of every kind over few names, so that they meet,
// and what the engine does on its own. Most receipts, fences and epochs are taken from the state:
// otherwise everything would be refused. No part of the product.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/filled.h"
#include "core/sequences.h"
#include "core/test_store.h"

namespace hapax::core::rig {

class RandomCommit {
 public:
  RandomCommit(const State& state, Time now, Dice& dice) : state_(state), now_(now), dice_(dice) {
    const std::uint64_t kind = dice_.below(16);
    if (kind == 0) {
      ops_.push_back(end());
    } else {
      if (kind == 1) commit_.transaction = open_transaction();
      const std::uint64_t count = dice_.one_in(10) ? dice_.between(2, 12) : dice_.between(1, 3);
      for (std::uint64_t i = 0; i < count; ++i) {
        ops_.push_back(commit_.transaction ? staged_op() : any_op());
      }
    }
    commit_.ops = ops_;
    commit_.mode = dice_.one_in(2) ? Mode::kAtomic : Mode::kEach;
    if (dice_.one_in(4)) commit_.id = kept("commit " + std::to_string(dice_.below(40)));
    commit_.id_window = Window{std::chrono::seconds{dice_.between(1, 20)}};
  }
  RandomCommit(const RandomCommit&) = delete;  // The commit refers to what is kept here.
  RandomCommit& operator=(const RandomCommit&) = delete;

  [[nodiscard]] const Commit& commit() const { return commit_; }

 private:
  using Names = std::array<std::string_view, 4>;
  static constexpr Names kStreams = {"a", "b", "c", "d"};
  static constexpr Names kKeys = {"k1", "k2", "k3", "k4"};
  static constexpr Names kGroups = {"", "g1", "g2", "g3"};
  static constexpr Names kOwners = {"", "w1", "w2", "worker with a name that is not short at all"};
  static constexpr Names kPayloads = {"", "p1", "p2", "a payload of more than a few bytes, so …"};

  std::string_view kept(std::string text) { return texts_.emplace_back(std::move(text)); }
  Window window() {
    if (dice_.one_in(20)) return Window::forever();
    return Window{std::chrono::seconds{dice_.between(1, 20)}};
  }
  Duration span() { return Duration{dice_.one_in(3) ? 1 : dice_.between(1, 8'000)}; }
  std::string_view stream() { return kStreams[dice_.below(dice_.one_in(4) ? 4 : 2)]; }
  std::string_view consumer() { return kKeys[dice_.below(2)]; }

  Op any_op() {
    const std::uint64_t kind = dice_.below(60);
    if (kind < 16) return append();
    if (kind < 24) return Receive{stream(), consumer(), small(1, 5), span(), dice_.pick(kOwners)};
    if (kind < 35) return with_receipt();
    if (kind < 44) return claim_op();
    if (kind < 49) return rest_op();
    if (kind < 56) return stream_op();
    return consumer_op();
  }
  Op staged_op() {
    switch (dice_.below(6)) {
      case 0:
        return ack();
      case 1:
        return advance();
      case 2:
        return register_op();
      case 3:
        return settle();
      default:
        return append();
    }
  }
  std::uint32_t small(std::uint32_t first, std::uint32_t last) {
    return static_cast<std::uint32_t>(dice_.between(first, last));
  }

  // --- streams -----------------------------------------------------------------------------------

  StreamSettings settings() {
    StreamSettings settings;
    settings.window = window();
    if (dice_.one_in(3)) settings.window_start = WindowStart::kLastSeen;
    if (dice_.one_in(3)) settings.id_scope = IdScope::kGroup;
    settings.content_ids = dice_.one_in(4);
    settings.track_groups = !dice_.one_in(4);
    if (dice_.one_in(4)) settings.retention.count = dice_.between(1, 30);
    if (dice_.one_in(4)) settings.retention.bytes = dice_.between(100, 3'000);
    if (dice_.one_in(4)) settings.retention.age = span();
    settings.retention.acked_by_all = dice_.one_in(4);
    settings.producer_memory = small(1, 4);
    settings.producers_max = small(1, 3);
    return settings;
  }
  Op append() {
    Append op{.stream = stream(), .payload = dice_.pick(kPayloads)};
    op.group = base::if_filled(dice_.pick(kGroups));
    if (dice_.one_in(2)) {
      const std::uint64_t id = dice_.below(4);
      op.id = kKeys[id];
      if (!dice_.one_in(4)) op.payload = kPayloads[id];  // Else a conflict is likely.
    }
    if (dice_.one_in(5)) op.headers = kHeaders;
    if (dice_.one_in(4)) op.producer = producer(op.stream);
    const Stream* known = state_.find_stream(op.stream);
    if (dice_.one_in(10)) {
      const Sequence last{known == nullptr ? 0 : known->last.value};
      op.expect = ExpectLast{ExpectLast::Of::kStream, last};
    }
    if (dice_.one_in(10)) op.first_sent = now_ - Duration{dice_.below(30'000)};
    return op;
  }
  // Mostly the expected one; else a repeat, a hole, an older or a newer epoch.
  ProducerMark producer(std::string_view name) {
    ProducerMark mark{kKeys[dice_.below(2)], Epoch{1}, ProducerSequence{0}};
    const Stream* known = state_.find_stream(name);
    if (known == nullptr) return mark;
    const auto found = known->producers.find(mark.name);
    if (found == known->producers.end()) return mark;
    mark.epoch = found->second.epoch;
    mark.sequence = found->second.next;
    const std::uint64_t kind = found->second.retired ? 1 : dice_.below(8);
    if (kind == 0) mark.sequence = ProducerSequence{dice_.below(mark.sequence.value + 2)};
    if (kind == 1) mark = {mark.name, Epoch{mark.epoch.value + dice_.below(2)}, {}};
    return mark;
  }
  Op stream_op() {
    const std::string_view name = stream();
    switch (dice_.below(12)) {
      case 0:
        if (dice_.one_in(4)) return DeleteStream{name};
        return ConfigureStream{name, settings()};
      case 3:
      case 4:
        return Trim{name, some_sequence(name)};
      case 5:
        return RetireProducer{name, kKeys[dice_.below(2)], "ann", "it left"};
      case 9:
        return OpenProducer{name, kKeys[dice_.below(2)]};
      case 6:
      case 7:
      case 8:
        return Redrive{"a.dead", some_sequence("a.dead")};
      default:
        return CreateStream{name, settings()};
    }
  }
  Sequence some_sequence(std::string_view name) {
    const Stream* known = state_.find_stream(name);
    if (known == nullptr) return Sequence{1};
    return Sequence{dice_.between(known->first.value, known->last.value + 1)};
  }

  // --- claims ------------------------------------------------------------------------------------

  Fence fence(std::string_view key) {
    const auto* found = state_.open_claims.find(hash_text("s/" + std::string(key), 4));
    if (found == nullptr || dice_.one_in(5)) return Fence{dice_.below(9)};
    return (*found)->fence;
  }
  ResultView result() { return {200, "h", dice_.pick(kPayloads)}; }
  Op settle() {
    const std::string_view key = dice_.pick(kKeys);
    return Settle{"s",        key,
                  fence(key), Outcome{static_cast<std::uint8_t>(dice_.below(4))},
                  result(),   dice_.pick(kOwners)};
  }
  Op claim_op() {
    const std::string_view key = dice_.pick(kKeys);
    switch (dice_.below(9)) {
      case 0:
        return Renew{"s", key, fence(key), span()};
      case 1:
      case 2: {
        const Resolution resolution{static_cast<std::uint8_t>(dice_.below(3))};
        return Resolve{"s", key, resolution, result(), "ann", "checked"};
      }
      case 3:
        return Forget{"s", key, "ann", "asked"};
      case 4:
      case 5:
      case 6:
        return settle();
      default:
        return Claim{"s",
                     key,
                     dice_.one_in(8) ? "other" : "",
                     dice_.pick(kOwners),
                     span(),
                     window(),
                     window(),
                     dice_.one_in(4) ? OnLapse::kUnknown : OnLapse::kTakeOver};
    }
  }

  // --- consumers ---------------------------------------------------------------------------------

  struct Held {
    std::string_view stream;
    std::string_view consumer;
    Receipt receipt;
  };
  Held held() {
    if (state_.consumers.empty() || dice_.one_in(8)) {
      return {stream(), consumer(), {Sequence{dice_.below(4)}, Token{dice_.below(6)}}};
    }
    const auto place = static_cast<std::ptrdiff_t>(dice_.below(state_.consumers.size()));
    const Consumer& known = std::next(state_.consumers.begin(), place)->second;
    Held held{kept(state_.stream(known.stream).name), kept(known.name), {}};
    if (known.pending.empty()) return held;
    const auto which = static_cast<std::ptrdiff_t>(dice_.below(known.pending.size()));
    const auto& [sequence, pending] = *std::next(known.pending.begin(), which);
    held.receipt = {sequence, pending.token};
    return held;
  }
  Op ack() {
    const Held what = held();
    return Ack{what.stream, what.consumer, what.receipt};
  }
  Op with_receipt() {
    const Held what = held();
    const std::uint64_t kind = dice_.below(8);
    if (kind < 4) return Ack{what.stream, what.consumer, what.receipt};
    if (kind == 4) return Extend{what.stream, what.consumer, what.receipt, span()};
    const Duration delay{dice_.one_in(2) ? 0 : dice_.below(5'000)};
    const bool last = dice_.one_in(8);
    return Nack{what.stream, what.consumer, what.receipt, delay, dice_.pick(kOwners), last};
  }
  Op consumer_op() {
    const std::string_view name = stream();
    switch (dice_.below(12)) {
      case 0:
        return DeleteConsumer{name, consumer()};
      case 1:
      case 2:
        return Seek{name, consumer(), some_sequence(name)};
      default: {
        ConsumerSettings settings;
        settings.attempts_max = small(1, 3);
        if (dice_.one_in(3)) settings.last_attempt = LastAttempt::kBlock;
        if (dice_.one_in(3)) settings.start = Sequence{dice_.below(8)};
        settings.in_flight_max = small(1, 8);
        return CreateConsumer{name, consumer(), settings};
      }
    }
  }

  // --- the rest ----------------------------------------------------------------------------------

  Op advance() {
    const std::string_view source = kKeys[dice_.below(2)];
    const Position* found = state_.positions.find(source);
    const bool known = found != nullptr;
    const std::uint64_t epoch = known ? found->epoch.value : 1;
    return Advance{source, known ? kept(found->value) : "", kept(std::to_string(dice_.below(9))),
                   Epoch{epoch + dice_.below(2)}};
  }
  Expiry expiry() {
    switch (dice_.below(4)) {
      case 0:
        return {Expiry::Kind::kKeep, {}, {}};
      case 1:
        return {Expiry::Kind::kAt, now_ + Duration{500} - Duration{dice_.below(1'000)}, {}};
      case 2:
        return {Expiry::Kind::kAfter, {}, Duration{1 + dice_.below(1'000)}};
      default:
        return {};
    }
  }
  Op register_op() {
    const std::string_view name = kKeys[dice_.below(2)];
    switch (dice_.below(6)) {
      case 0:
        return Get{name, dice_.one_in(2)};
      case 1:
        return Unset{name, dice_.one_in(2)};
      case 2:
        return Expire{name, expiry(), static_cast<ExpireIf>(dice_.below(6))};
      case 3:
        return Add{name, static_cast<std::int64_t>(dice_.below(9)) - 4};
      default:
        return set(name);
    }
  }
  Op set(std::string_view name) {
    const auto* found = state_.registers.find(hash_text(name, 5));
    Set op{.name = name, .value = dice_.pick(kPayloads), .expiry = expiry()};
    if (dice_.one_in(3)) op.value = "41";
    if (found != nullptr) op.expected = (*found)->version;
    op.mode = static_cast<SetMode>(dice_.below(5));
    op.tell_value = dice_.one_in(4);
    if (dice_.one_in(3)) {
      op.at = HybridTime{to_ms(now_) + 500 - static_cast<std::int64_t>(dice_.below(1'000)),
                         small(0, 3), small(0, 3)};
    }
    return op;
  }
  Op rest_op() {
    const std::uint64_t kind = dice_.below(6);
    if (kind < 2) return advance();
    if (kind < 4) return register_op();
    return Begin{kKeys[dice_.below(2)], dice_.one_in(3) ? span() : Duration{60'000}};
  }
  Op end() {
    const TransactionRef open = open_transaction();
    return End{open.name, open.epoch, dice_.one_in(3) ? Finish::kAbort : Finish::kCommit};
  }
  TransactionRef open_transaction() {
    const std::string_view name = kKeys[dice_.below(2)];
    const auto found = state_.transactions.find(name);
    const bool known = found != state_.transactions.end() && !dice_.one_in(8);
    return {name, known ? found->second.epoch : Epoch{dice_.below(4)}};
  }

  static constexpr std::array<Header, 2> kHeaders = {Header{"type", "order"}, Header{"n", ""}};

  const State& state_;
  Time now_;
  Dice& dice_;
  std::deque<std::string> texts_;
  std::vector<Op> ops_;
  Commit commit_;
};

// --- what the engine does on its own -------------------------------------------------------------

// Copies a run of an old segment to the end of the journal.
inline void move_run(MemoryStore& store, const Stream& stream, Dice& dice) {
  if (stream.runs.empty()) return;
  const Run& run = stream.runs[dice.below(stream.runs.size())];
  if (run.last() < stream.first || run.at.segment == store.journal.segment()) return;
  if (run.at.length == 0) return;
  const std::string frames = store.journal.read(run.at);
  store.emit(RunMoved{stream.uid, run.first, run.count, frames});
}

inline void move_result(MemoryStore& store, Dice& dice) {
  std::map<base::Hash128, base::Where> results;
  store.state.settled.for_each(
      store.now, [&](const SettledEntry& entry) { results.emplace(entry.key, entry.where); });
  if (results.empty()) return;
  const auto place = static_cast<std::ptrdiff_t>(dice.below(results.size()));
  const auto& [key, at] = *std::next(results.begin(), place);
  if (at.segment == store.journal.segment()) return;
  if (!is_live_result(store.state, key, at, store.now)) return;
  const std::string frame = store.journal.read(at);
  store.emit(ResultMoved{key, frame});
}

// As a repair does: the records of some runs and parts of runs, for everybody.
inline void lose_records(MemoryStore& store, const Stream& stream, Dice& dice) {
  std::vector<Sequence> lost;
  for (const Run& run : stream.runs) {
    if (!dice.one_in(3)) continue;
    const bool whole = dice.one_in(2);
    for (Sequence at = run.first; at <= run.last(); at = at.next()) {
      if (stream.keeps(at) && (whole || dice.one_in(2))) lost.push_back(at);
    }
  }
  if (lost.empty()) return;
  std::string sequences;
  encode_sequences(lost, sequences);
  store.emit(RecordsLost{stream.uid, sequences});
  for (const auto& [name, uid] : stream.consumers) {
    for (const Sequence sequence : lost) {
      if (!store.state.consumers.at(uid).pending.contains(sequence)) continue;
      store.emit(Acked{uid, sequence, false});
    }
  }
}

inline void lose_result(MemoryStore& store, Dice& dice) {
  std::map<base::Hash128, base::Where> results;
  store.state.settled.for_each(
      store.now, [&](const SettledEntry& entry) { results.emplace(entry.key, entry.where); });
  if (results.empty()) return;
  const auto place = static_cast<std::ptrdiff_t>(dice.below(results.size()));
  const auto& [key, at] = *std::next(results.begin(), place);
  if (at.segment == store.journal.segment()) return;
  store.emit(ResultLost{key});
}

inline void keep_house(MemoryStore& store, Dice& dice) {
  if (dice.one_in(40)) store.emit(JournalGap{7, 9});
  if (dice.one_in(20)) store.emit(TimeNoted{});
  if (dice.one_in(2)) move_result(store, dice);
  if (dice.one_in(8)) lose_result(store, dice);
  for (std::size_t i = 0; i < store.state.streams.size(); ++i) {
    const Stream* stream = store.state.streams[i].get();
    if (stream == nullptr) continue;
    if (dice.one_in(4)) move_run(store, *stream, dice);
    if (dice.one_in(16)) lose_records(store, *stream, dice);
    if (!dice.one_in(3)) continue;
    if (const auto target = retention_target(store.state, *stream, store.now)) {
      store.emit(trimmed(*stream, *target, store.now));
    }
  }
}

// Opens a batch and fills it.
inline void fill_batch(MemoryStore& store, Dice& dice) {
  constexpr std::array<std::int64_t, 6> kLater = {0, 1, 40, 900, 3'000, 25'000};
  // Now and then so much later that everything with an end is over.
  store.begin(dice.one_in(60) ? Duration{std::chrono::hours{25}} : Duration{dice.pick(kLater)});
  const std::uint64_t commits = dice.between(1, 6);
  for (std::uint64_t i = 0; i < commits; ++i) {
    const RandomCommit random(store.state, store.now, dice);
    const Executed executed = store.commit(random.commit());
    if (dice.one_in(6)) keep_house(store, dice);
  }
}

}  // namespace hapax::core::rig
