// For the tests of consumers: streams and consumers over a journal in memory, with the operations
// in short. No part of the product.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/filled.h"
#include "core/consumers.h"
#include "core/turn.h"

namespace hapax::core {

class ConsumersHarness final : private StateOwner {
 public:
  struct Mark {
    Undo::Mark undo;
    std::size_t facts;
  };

  State state{4};
  Undo undo;
  Time now = time_from_ms(1'700'000'000'000);
  bool disk_fails = false;
  std::function<void(const Fact&)> on_fact;  // before it is applied

  ConsumersHarness() { emit(StreamMade{StreamUid{1}, "orders", StreamSettings{}}); }

  template <class Op>
  Verdict run(const Op& op) {
    Turn turn = make_turn();
    const Turn::Mark before = turn.mark();
    Verdict verdict = core::run(turn, op);
    if (std::holds_alternative<Refused>(verdict)) turn.roll_back(before);
    return verdict;
  }
  void emit(const Fact& fact) { make_turn().emit(fact); }

  Sequence append(std::string_view group = "", std::string_view payload = "p",
                  std::string_view stream = "orders") {
    Turn turn = make_turn();
    AppendHashes hashes;
    hashes.content.low = group_hash(payload);
    if (!group.empty()) hashes.group = group_hash(group);
    const Verdict verdict = core::run(
        turn, Append{.stream = stream, .payload = payload, .group = base::if_filled(group)},
        hashes);
    return std::get<Appended>(verdict).sequence;
  }
  Verdict create(std::string_view consumer, const ConsumerSettings& settings,
                 std::string_view stream = "orders") {
    return run(CreateConsumer{stream, consumer, settings});
  }
  std::vector<Delivery> receive(std::string_view consumer, std::uint32_t max = 1,
                                Duration lease = Duration{1'000}, std::string_view owner = "w1",
                                std::string_view stream = "orders") {
    const Verdict verdict = run(Receive{stream, consumer, max, lease, owner});
    return std::get<Received>(verdict).deliveries;
  }
  Verdict ack(std::string_view consumer, Receipt receipt, std::string_view stream = "orders") {
    return run(Ack{stream, consumer, receipt});
  }
  Verdict nack(std::string_view consumer, Receipt receipt, Duration delay = Duration{0},
               std::string_view reason = "", std::string_view stream = "orders",
               bool last = false) {
    return run(Nack{stream, consumer, receipt, delay, reason, last});
  }
  Verdict extend(std::string_view consumer, Receipt receipt, Duration lease,
                 std::string_view stream = "orders") {
    return run(Extend{stream, consumer, receipt, lease});
  }
  Verdict redrive(Sequence sequence, RedriveTo to = RedriveTo::kConsumer,
                  std::string_view dead_letters = "orders.dead") {
    return run(Redrive{dead_letters, sequence, to});
  }
  void pass(Duration span) { now += span; }

  [[nodiscard]] Stream& stream(std::string_view name = "orders") {
    Stream* found = state.find_stream(name);
    HAPAX_ASSERT(found != nullptr, "the stream exists");
    return *found;
  }
  [[nodiscard]] Consumer& consumer(std::string_view name, std::string_view of = "orders") {
    Consumer* found = state.find_consumer(stream(of), name);
    HAPAX_ASSERT(found != nullptr, "the consumer exists");
    return *found;
  }
  [[nodiscard]] RecordAppended record(Sequence sequence, std::string_view of = "orders") {
    const auto fact = decode_fact(records_.at({stream(of).uid, sequence}));
    return std::get<RecordAppended>(*fact);
  }
  [[nodiscard]] std::size_t facts() const { return journal_.size(); }
  [[nodiscard]] static GroupHash group_hash(std::string_view group) {
    return base::spread(std::hash<std::string_view>{}(group)).low | 1;
  }

  [[nodiscard]] Mark mark() const { return {undo.mark(), journal_.size()}; }
  void roll_back(const Mark& mark) {
    undo.roll_back(state, mark.undo);
    journal_.resize(mark.facts);
  }
  // The state that the journal alone gives.
  [[nodiscard]] std::unique_ptr<State> replayed() const {
    auto fresh = std::make_unique<State>(4U);
    for (const Line& line : journal_)
      apply(*fresh, *decode_fact(line.bytes), line.at, line.now, nullptr);
    return fresh;
  }

 private:
  struct Line {
    std::string bytes;
    base::Where at;
    Time now;
  };

  Turn make_turn() { return {state, now, undo, *this}; }
  base::Where write(const Fact& fact) override {
    if (on_fact) on_fact(fact);
    Line line{{}, {}, now};
    encode(fact, line.bytes);
    const Line* before = journal_.empty() ? nullptr : &journal_.back();
    const std::uint32_t offset = before == nullptr ? 0 : before->at.offset + before->at.length;
    line.at = {1, offset, static_cast<std::uint32_t>(line.bytes.size() + kFactTrailer)};
    if (const auto* appended = std::get_if<RecordAppended>(&fact)) {
      records_[{appended->stream, appended->sequence}] = line.bytes;
    }
    journal_.push_back(std::move(line));
    return journal_.back().at;
  }
  Result<std::string> read_record(const Stream& stream, Sequence sequence) override {
    if (disk_fails) return Error{Errc::kIo, "the disk failed"};
    HAPAX_ASSERT(stream.keeps(sequence), "only a kept record is read");
    return records_.at({stream.uid, sequence});
  }
  ContentId content_id(std::string_view) override { return {}; }
  std::size_t batch_mark() override { return journal_.size(); }
  void cut_batch(std::size_t size) override { journal_.resize(size); }

  std::vector<Line> journal_;
  std::map<std::pair<StreamUid, Sequence>, std::string> records_;
};

// --- answers in short --------------------------------------------------------------------------

inline Receipt receipt_of(const Delivery& delivery) {
  return {delivery.record.sequence, delivery.token};
}

inline std::vector<std::uint64_t> numbers(const std::vector<Delivery>& deliveries) {
  std::vector<std::uint64_t> all;
  for (const Delivery& delivery : deliveries) all.push_back(delivery.record.sequence.value);
  return all;
}

inline bool is_done(const Verdict& verdict) { return std::holds_alternative<Done>(verdict); }
inline Errc refusal_of(const Verdict& verdict) { return std::get<Refused>(verdict).error.code; }
inline std::string refusal_text(const Verdict& verdict) {
  return std::get<Refused>(verdict).error.detail;
}

// --- everything consumers change, as text ------------------------------------------------------

inline void dump_spans(std::ostream& out, const char* name, const Spans& spans) {
  out << ' ' << name;
  spans.for_each([&out](const Spans::Span& span) {
    out << ' ' << span.first.value << '-' << span.last.value << ':' << span.label;
  });
  out << '\n';
}

inline void dump_consumer(std::ostream& out, const Consumer& consumer) {
  const OwnedConsumerSettings& settings = consumer.settings;
  out << "consumer " << consumer.uid.value << ' ' << consumer.name << " of "
      << consumer.stream.value << " settings " << settings.attempts_max << ' '
      << static_cast<int>(settings.last_attempt) << ' ' << settings.dead_letters << ' '
      << settings.start.value << ' ' << settings.in_flight_max << "\n next " << consumer.next.value
      << " token " << consumer.next_token.value << " from " << consumer.valid_from.value
      << " in flight " << consumer.in_flight << " dead " << consumer.dead_lettered << '\n';
  dump_spans(out, "acked", consumer.acked);
  dump_spans(out, "tokens", consumer.acked_tokens);
  for (const auto& [sequence, pending] : consumer.pending) {
    out << " pending " << sequence.value << " state " << static_cast<int>(pending.state) << " x"
        << pending.attempts << " group " << pending.group << " token " << pending.token.value
        << " due " << to_ms(pending.due) << " handed " << to_ms(pending.first_handed_out) << ' '
        << to_ms(pending.last_handed_out) << " owner "
        << (pending.owner == nullptr ? "-" : *pending.owner) << '\n';
    for (const PastAttempt& past : pending.past == nullptr ? PastAttempts{} : *pending.past) {
      out << "  past " << past.attempt << ' ' << to_ms(past.handed_out) << ' ' << to_ms(past.ended)
          << ' ' << static_cast<int>(past.ending) << ' ' << past.owner << ' ' << past.reason
          << '\n';
    }
  }
  for (const auto& [due, sequence] : consumer.due) {
    out << " due " << to_ms(due) << ' ' << sequence.value << '\n';
  }
  for (const auto& [due, sequence] : consumer.waiting) {
    out << " waiting " << to_ms(due) << ' ' << sequence.value << '\n';
  }
  const std::map<GroupHash, Sequence> heads(consumer.heads.begin(), consumer.heads.end());
  for (const auto& [group, head] : heads) out << " head " << group << ' ' << head.value << '\n';
  for (const auto& [group, sequence] : consumer.parked) {
    out << " parked " << group << ' ' << sequence.value << '\n';
  }
}

inline std::string dump_consumers(const State& state) {
  std::ostringstream out;
  for (const auto& stream : state.streams) {
    if (stream == nullptr) continue;
    out << "stream " << stream->uid.value << ' ' << stream->name << ' ' << stream->first.value
        << ".." << stream->last.value << " bytes " << stream->bytes << " runs "
        << stream->runs.size() << '\n';
    dump_spans(out, "removed", stream->removed);
    for (const auto& [sequence, consumer] : stream->addressed) {
      out << ' ' << sequence.value << " for " << consumer;
    }
    for (const auto& [name, uid] : stream->consumers) out << ' ' << name << '=' << uid.value;
    out << '\n';
  }
  for (const auto& [uid, consumer] : state.consumers) dump_consumer(out, consumer);
  out << "next consumer " << state.next_consumer.value << " text " << state.text_bytes
      << " trimmed " << state.trimmed.size() << '\n';
  for (const auto& [segment, bytes] : state.live_bytes) out << segment << ':' << bytes << '\n';
  return out.str();
}

}  // namespace hapax::core
