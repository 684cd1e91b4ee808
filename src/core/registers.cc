// Positions of outside sources, and registers.
#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "core/text_bytes.h"
#include "core/turn.h"

namespace hapax::core {

namespace {

// H1: the clock is never behind anything it has seen, so a wall clock that jumps back cannot make
// a later write lose, and one that jumps ahead does not drag the register along: log time is
// clamped.
// H2: log time may lag behind the wall clock for hours after a jump. Writers with the right time
// are not refused for that; those far ahead of both are, or they would win for ever.
HybridTime tick(const HybridTime& seen, Time now) {
  if (to_ms(now) > seen.wall_ms) return {to_ms(now), 0, 0};
  // A writer may have given the highest counter there is.
  const bool full = seen.counter == std::numeric_limits<std::uint32_t>::max();
  return full ? HybridTime{seen.wall_ms + 1, 0, 0} : HybridTime{seen.wall_ms, seen.counter + 1, 0};
}

const RegisterValue* find_register(const State& state, std::string_view name) {
  const auto* found = state.registers.find(name);
  return found == nullptr ? nullptr : found->get();
}

std::optional<Verdict> refuse_set(const RegisterValue* known, const Set& op, HybridTime at,
                                  const Turn& turn) {
  const Version version = known == nullptr ? Version{} : known->version;
  const HybridTime known_at = known == nullptr ? HybridTime{} : known->at;
  if (op.mode == SetMode::kVersion) {
    if (version != op.expected) return Superseded{version, known_at};
    return std::nullopt;
  }
  const std::int64_t latest = op.at ? to_ms(turn.latest()) : at.wall_ms;
  const std::int64_t ahead = std::max(at.wall_ms, latest) - latest;
  if (op.at && ahead > limits::kHybridAheadMax.count()) {
    return Refused{{Errc::kInvalidArgument, "register '" + std::string(op.name) +
                                                "': the time given is " + std::to_string(ahead) +
                                                " ms ahead of the store; the most is " +
                                                std::to_string(limits::kHybridAheadMax.count()) +
                                                ". Check the writer's clock and the store's."}};
  }
  if (known != nullptr && at <= known_at) return Superseded{version, known_at};
  return std::nullopt;
}

// Something grows from `before` to `after` bytes. What does not grow is never refused.
std::optional<Refused> refuse_growth(const State& state, std::uint64_t before,
                                     std::uint64_t after) {
  if (after <= before) return std::nullopt;
  if (auto error = check_memory(state, after - before)) return Refused{*std::move(error)};
  return std::nullopt;
}

std::uint64_t bytes_of(std::string_view name, std::string_view value) {
  return kNodeBytes + name.size() + value.size();
}

// Above every epoch that was handed out or that a producer chose.
Epoch epochs_end(const State& state) {
  Epoch end = state.next_epoch;
  for (const auto& stream : state.streams) {
    if (stream == nullptr) continue;
    for (const auto& [name, producer] : stream->producers) {
      end = std::max(end, producer.epoch.next());
    }
  }
  return end;
}

}  // namespace

Verdict run(Turn& turn, const Advance& op) {
  const Position* found = turn.state().positions.find(op.source);
  const Epoch epoch = found == nullptr ? Epoch{} : found->epoch;
  const std::string value = found == nullptr ? std::string{} : found->value;
  if (op.epoch < epoch) {
    turn.count_fenced();
    return Fenced{epoch.value, op.epoch.value};
  }
  // Also for a repeat that finds the position where it wanted it: were that "done", the effects
  // beside it in the commit would happen twice. The actual position tells the caller.
  if (value != op.expected) return ExpectationFailed{Sequence{}, value};
  const std::uint64_t before = found == nullptr ? 0 : bytes_of(op.source, value);
  if (auto full = refuse_growth(turn.state(), before, bytes_of(op.source, op.to))) {
    return *std::move(full);
  }
  turn.emit(PositionMoved{op.source, op.to, op.epoch});
  return Done{};
}

Verdict run(Turn& turn, const Set& op) {
  const RegisterValue* known = find_register(turn.state(), op.name);
  const HybridTime at =
      op.mode == SetMode::kLastWriter && op.at ? *op.at : tick(turn.state().hybrid, turn.now());
  if (auto refusal = refuse_set(known, op, at, turn)) return *std::move(refusal);
  const std::uint64_t before = known == nullptr ? 0 : bytes_of(op.name, known->value);
  if (auto full = refuse_growth(turn.state(), before, bytes_of(op.name, op.value))) {
    return *std::move(full);
  }
  const Version version = (known == nullptr ? Version{} : known->version).next();
  turn.emit(RegisterSet{op.name, op.value, version, at});
  return Registered{version, at};
}

void apply_rest(State& state, const PositionMoved& fact, base::Where, Time, Undo* undo) {
  const Position* known = state.positions.find(fact.source);
  Position before = known == nullptr ? Position{} : *known;
  record(undo, [name = std::string(fact.source), before, was_made = known == nullptr,
                bytes = state.text_bytes](State& s) mutable {
    if (was_made) {
      s.positions.erase(name);
    } else {
      s.positions.set(name, std::move(before));
    }
    s.text_bytes = bytes;
  });
  if (known == nullptr) state.text_bytes += kNodeBytes + fact.source.size();
  state.text_bytes += fact.value.size();
  state.text_bytes -= before.value.size();
  state.positions.set(std::string(fact.source), Position{std::string(fact.value), fact.epoch});
}

void apply_rest(State& state, const RegisterSet& fact, base::Where, Time, Undo* undo) {
  const auto* known = state.registers.find(fact.name);
  auto before = known == nullptr ? nullptr : *known;
  record(undo, [name = std::string(fact.name), before, hybrid = state.hybrid,
                bytes = state.text_bytes](State& s) {
    if (before == nullptr) {
      s.registers.erase(name);
    } else {
      s.registers.set(name, before);
    }
    s.hybrid = hybrid;
    s.text_bytes = bytes;
  });
  if (before == nullptr) state.text_bytes += kNodeBytes + fact.name.size();
  state.text_bytes += fact.value.size();
  state.text_bytes -= before == nullptr ? 0 : before->value.size();
  state.registers.set(std::string(fact.name), std::make_shared<const RegisterValue>(RegisterValue{
                                                  std::string(fact.value), fact.version, fact.at}));
  HybridTime seen = fact.at;
  seen.node = 0;
  state.hybrid = std::max(state.hybrid, seen);
}

// What was lost may include ids, and numbers that somebody holds as proof: nobody may be told that
// an older id is surely new, and no fence, epoch or token may be given out twice.
void apply_rest(State& state, const JournalGap& fact, base::Where, Time now, Undo* undo) {
  ++state.gaps;
  record(undo, [](State& s) { --s.gaps; });
  if (fact.last_lsn == 0) return;  // Only payloads were lost: the facts that follow name them.
  for (const auto& stream : state.streams) {
    if (stream == nullptr) continue;
    record(undo, [owner = stream.get(), floor = stream->horizon_floor](State&) {
      owner->horizon_floor = floor;
    });
    stream->horizon_floor = now;
  }
  const std::uint64_t lost = fact.last_lsn - fact.first_lsn + 1;
  record(undo, [lost, epoch = state.next_epoch](State& s) {
    s.next_fence.value -= lost;
    s.next_epoch = epoch;
    s.first_token.value -= lost * limits::kReceiveMax;
    for (auto& [uid, consumer] : s.consumers)
      consumer.next_token.value -= lost * limits::kReceiveMax;
  });
  state.next_fence.value += lost;
  state.next_epoch = Epoch{epochs_end(state).value + lost};
  state.first_token.value += lost * limits::kReceiveMax;
  for (auto& [uid, consumer] : state.consumers)
    consumer.next_token.value += lost * limits::kReceiveMax;
}

}  // namespace hapax::core
