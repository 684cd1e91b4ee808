// Consumers as bytes. A consumer's parked records are written behind the head of their group (C1),
// and what is acked is not written at all: it is everything below `next` that is neither pending
// nor parked (C4).
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "core/state_parts.h"
#include "core/text_bytes.h"

namespace hapax::core {

template <>
inline constexpr std::uint8_t kEnumMax<PendingState> = 2;

template <class Io, Is<OwnedConsumerSettings> F>
void fields(Io& io, F& f) {
  io.all(f.attempts_max, f.last_attempt, f.dead_letters, f.start, f.in_flight_max);
}
template <class Io, Is<Consumer> F>
void fields(Io& io, F& f) {
  io.all(f.uid, f.stream, f.name, f.settings, f.next, f.next_token, f.valid_from, f.dead_lettered);
}
template <class Io, Is<Pending> F>
void fields(Io& io, F& f) {
  io.all(f.state, f.attempts, f.token, f.due, f.first_handed_out, f.last_handed_out);
}

namespace {

// --- pending and parked records ------------------------------------------------------------------

// Who holds or held records of a consumer; a record names its owner by the place in this list,
// counted from 1.
class Owners {
 public:
  explicit Owners(const Consumer& consumer) {
    for (const auto& [sequence, pending] : consumer.pending) place_of(pending);
  }
  [[nodiscard]] const std::vector<std::string_view>& names() const { return names_; }
  std::uint64_t place_of(const Pending& pending) {
    if (pending.owner == nullptr) return 0;
    if (pending.owner.get() == latest_) return latest_place_;  // Most are its neighbour's.
    const auto [place, added] = places_.try_emplace(*pending.owner, names_.size() + 1);
    if (added) names_.push_back(*pending.owner);
    latest_ = pending.owner.get();
    return latest_place_ = place->second;
  }

 private:
  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, std::uint64_t> places_;
  const std::string* latest_ = nullptr;
  std::uint64_t latest_place_ = 0;
};

void encode_past(const Pending& pending, FieldWriter& put) {
  static const PastAttempts kNone;
  put(pending.past == nullptr ? kNone : *pending.past);
}

// C7, and none of them after the latest hand-out.
bool decode_past(Reading& in, Pending& pending) {
  PastAttempts past;
  in.get(past);
  if (!in.get.ok() || !is_within_limits(past)) return false;
  std::uint32_t before = 0;
  for (const PastAttempt& attempt : past) {
    if (attempt.attempt <= before || attempt.attempt > pending.attempts) return false;
    if (!is_plausible(attempt.handed_out) || !is_plausible(attempt.ended)) return false;
    before = attempt.attempt;
  }
  if (!past.empty()) pending.past = std::make_shared<const PastAttempts>(std::move(past));
  return true;
}

std::size_t encode_parked(const Consumer& consumer, GroupHash group, Sequence head,
                          FieldWriter& put) {
  const auto first = consumer.parked.lower_bound({group, Sequence{0}});
  auto end = first;
  std::uint64_t count = 0;
  for (; end != consumer.parked.end() && end->first == group; ++end) ++count;
  put(count);
  Sequence before = head;
  for (auto parked = first; parked != end; ++parked) {
    HAPAX_ASSERT(parked->second > before, "C1: the head of a group is its oldest record");
    put(parked->second.value - before.value);
    before = parked->second;
  }
  return count;
}

void encode_pending(const Consumer& consumer, FieldWriter& put) {
  Owners owners(consumer);
  put.all(owners.names(), std::uint64_t{consumer.pending.size()});
  Sequence before;
  std::size_t parked = 0;
  for (const auto& [sequence, pending] : consumer.pending) {
    put.all(sequence.value - before.value, pending);
    encode_past(pending, put);
    put(owners.place_of(pending));
    fixed64(put, pending.group);
    if (pending.group != 0) parked += encode_parked(consumer, pending.group, sequence, put);
    before = sequence;
  }
  HAPAX_ASSERT(parked == consumer.parked.size(), "C1: a record is parked behind its head");
}

// A record that was never handed out has no token, no owner and no attempts; only such a one, or
// one given back, can be waiting.
bool is_possible(const Consumer& consumer, const Pending& pending) {
  if (!is_plausible(pending.due) || !is_plausible(pending.first_handed_out) ||
      !is_plausible(pending.last_handed_out)) {
    return false;
  }
  const bool handed_out = pending.token != Token{0};
  if (handed_out != (pending.attempts > 0) || handed_out != (pending.owner != nullptr)) {
    return false;
  }
  if (!handed_out) return pending.state == PendingState::kWaiting;
  return pending.token >= consumer.valid_from && pending.token < consumer.next_token;
}

class PendingReader {
 public:
  PendingReader(Reading& in, const Stream& stream, Consumer& consumer)
      : in_(in), stream_(stream), consumer_(consumer) {}

  Status read() {
    std::vector<std::string> names;
    in_.get(names);
    for (std::string& name : names) {
      owners_.push_back(std::make_shared<const std::string>(std::move(name)));
    }
    const std::uint64_t count = in_.count();
    Sequence sequence;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t distance = 0;
      in_.get(distance);
      if (!in_.get.ok() || distance == 0) return in_.unreadable();
      sequence = Sequence{sequence.value + distance};
      HAPAX_CHECK(read_one(sequence));
    }
    if (!in_.get.ok()) return in_.unreadable();
    return derive_acked();
  }

 private:
  Status read_one(Sequence sequence) {
    Pending pending;
    std::uint64_t owner = 0;
    in_.get(pending);
    if (!in_.get.ok() || !decode_past(in_, pending)) return in_.unreadable();
    in_.get(owner);
    fixed64(in_.get, pending.group);
    if (!in_.get.ok() || owner > owners_.size()) return in_.unreadable();
    if (owner > 0) pending.owner = owners_[owner - 1];
    if (!is_possible(consumer_, pending)) return impossible(sequence, "an impossible state");
    HAPAX_CHECK(note(sequence, pending.group));
    if (pending.group != 0) {
      if (!consumer_.heads.emplace(pending.group, sequence).second) {
        return impossible(sequence, "the group of another pending one");  // C1
      }
      HAPAX_CHECK(read_parked(pending.group, sequence));
    }
    // C5
    if (pending.state == PendingState::kWaiting) consumer_.waiting.emplace(pending.due, sequence);
    if (pending.state == PendingState::kInFlight) {
      consumer_.due.emplace(pending.due, sequence);
      ++consumer_.in_flight;
    }
    if (pending.past != nullptr) consumer_.past_bytes += past_memory(*pending.past);
    consumer_.pending.emplace_hint(consumer_.pending.end(), sequence, std::move(pending));
    return Ok{};
  }

  Status read_parked(GroupHash group, Sequence head) {
    const std::uint64_t count = in_.count();
    Sequence sequence = head;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t distance = 0;
      in_.get(distance);
      if (!in_.get.ok() || distance == 0) return in_.unreadable();
      sequence = Sequence{sequence.value + distance};
      HAPAX_CHECK(note(sequence, group));
      consumer_.parked.emplace(group, sequence);
    }
    if (!in_.get.ok()) return in_.unreadable();
    return Ok{};
  }

  // A record that is neither acked nor ahead of the consumer.
  Status note(Sequence sequence, GroupHash group) {
    if (sequence == Sequence{0} || sequence >= consumer_.next || sequence > stream_.last) {
      return in_.broken(
          base::format("has not come to record {} yet: its next is {}, the last of its stream {}",
                       sequence.value, consumer_.next.value, stream_.last.value));
    }
    if (sequence >= stream_.first && stream_.group_of(sequence) != group) {
      return impossible(sequence, "another group than in its stream");
    }
    if (!stream_.is_for(consumer_.name, sequence)) {
      return impossible(sequence, "another consumer that it is for");  // C9
    }
    not_acked_.push_back(sequence);
    return Ok{};
  }

  Status derive_acked() {
    std::sort(not_acked_.begin(), not_acked_.end());
    Sequence from{1};
    for (const Sequence sequence : not_acked_) {
      if (sequence < from) return impossible(sequence, "two places");
      if (sequence > from) consumer_.acked.add({from, Sequence{sequence.value - 1}, 0});
      from = sequence.next();
    }
    const Sequence end = consumer_.next;
    if (end > from) consumer_.acked.add({from, Sequence{end.value - 1}, 0});
    return Ok{};
  }

  Error impossible(Sequence sequence, std::string_view what) const {
    return in_.broken(base::format("has record {} with {}", sequence.value, what));
  }

  Reading& in_;
  const Stream& stream_;
  Consumer& consumer_;
  std::vector<std::shared_ptr<const std::string>> owners_;
  std::vector<Sequence> not_acked_;
};

// --- tokens of acked records ---------------------------------------------------------------------

// Written with the token of a span's first record, which is a smaller number than its label.
void encode_tokens(const Consumer& consumer, FieldWriter& put) {
  put(std::uint64_t{consumer.acked_tokens.size()});
  Sequence before;
  consumer.acked_tokens.for_each([&](const Spans::Span& span) {
    put.all(span.first.value - before.value, span.last.value - span.first.value,
            span.label + span.first.value);
    before = span.last;
  });
}

Status decode_tokens(Reading& in, Consumer& consumer) {
  const std::uint64_t count = in.count();
  if (count > kAckedTokenSpansMax) return in.broken("remembers too many tokens");
  Spans::Span before;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t distance = 0;
    std::uint64_t length = 0;
    std::uint64_t token = 0;
    in.get.all(distance, length, token);
    if (!in.get.ok() || distance == 0) return in.unreadable();
    Spans::Span span;
    span.first = Sequence{before.last.value + distance};
    span.last = Sequence{span.first.value + length};
    span.label = token - span.first.value;
    const bool joins = i > 0 && distance == 1 && span.label == before.label;
    const auto acked = consumer.acked.find(span.first);
    const bool is_acked = span.first <= span.last && acked && acked->last >= span.last;
    const bool was_given = token >= consumer.valid_from.value &&
                           token < consumer.next_token.value &&
                           length < consumer.next_token.value - token;
    if (joins || !is_acked || !was_given) {
      return in.broken(base::format("remembers tokens it cannot have given, from record {} on",
                                    span.first.value));
    }
    consumer.acked_tokens.add(span);
    before = span;
  }
  if (!in.get.ok()) return in.unreadable();
  return Ok{};
}

// --- consumers -----------------------------------------------------------------------------------

// C4: what is not written follows from what is; that must be all.
void assert_nothing_lost(const Consumer& consumer) {
  std::uint64_t known = consumer.pending.size() + consumer.parked.size();
  consumer.acked.for_each(
      [&](const Spans::Span& span) { known += span.last.value - span.first.value + 1; });
  HAPAX_ASSERT(known == consumer.next.value - 1, "C4: every record below `next` is somewhere");
}

Status decode_consumer(Reading& in, State& into) {
  Consumer read;
  in.get(read);
  if (!in.get.ok() || read.uid == ConsumerUid{0}) return in.unreadable();
  const std::uint64_t uid = read.stream.value;
  Stream* const stream =
      uid == 0 || uid > into.streams.size() ? nullptr : into.streams[uid - 1].get();
  if (stream == nullptr) {
    return in.broken(base::format("belongs to stream {}, which does not exist", uid));
  }
  if (read.next == Sequence{0} || read.next.value >= kNumberEnd || read.valid_from == Token{0} ||
      read.valid_from > read.next_token || read.next_token.value >= kNumberEnd) {
    return in.unreadable();
  }
  if (!into.consumers.empty() && into.consumers.rbegin()->first >= read.uid) {
    return in.broken(base::format("has uid {}, which is out of order", read.uid.value));
  }
  if (!stream->consumers.emplace(read.name, read.uid).second) {
    return in.broken("has the name of another one of its stream, '" + read.name + "'");
  }
  Consumer& consumer = into.consumers.emplace(read.uid, std::move(read)).first->second;
  HAPAX_CHECK(PendingReader(in, *stream, consumer).read());
  HAPAX_CHECK(decode_tokens(in, consumer));
  into.grow(*stream->tenant, text_bytes_of(consumer));
  return Ok{};
}

}  // namespace

void encode_consumers(const State& state, Writing& out) {
  out.put.all(state.next_consumer, state.first_token, std::uint64_t{state.consumers.size()});
  for (const auto& [uid, consumer] : state.consumers) {
    assert_nothing_lost(consumer);
    out.put(consumer);
    encode_pending(consumer, out.put);
    encode_tokens(consumer, out.put);
  }
}

Status decode_consumers(Reading& in, State& into) {
  in.begin("list of consumers", 1);
  in.get(into.next_consumer);
  if (in.has_first_token) in.get(into.first_token);
  if (into.first_token == Token{0} || into.first_token.value >= kNumberEnd) in.get.refuse();
  const std::uint64_t count = in.count();
  for (std::uint64_t i = 0; i < count; ++i) {
    in.begin("consumer", i + 1);
    HAPAX_CHECK(decode_consumer(in, into));
  }
  if (!in.get.ok()) return in.unreadable();
  const bool counted =
      into.consumers.empty() || into.consumers.rbegin()->first < into.next_consumer;
  if (!counted || into.next_consumer == ConsumerUid{0} || into.next_consumer.value >= kNumberEnd) {
    return in.broken(base::format("comes after next_consumer, {}", into.next_consumer.value));
  }
  return Ok{};
}

}  // namespace hapax::core
