// Positions of outside sources, and what a repair that accepted a loss does to numbers.
#include <algorithm>

#include "core/text_bytes.h"
#include "core/turn.h"

namespace hapax::core {

namespace {

std::uint64_t bytes_of(std::string_view name, std::string_view value) {
  return kNodeBytes + name.size() + value.size();
}

// Above every epoch that was handed out or that a producer chose.
Epoch epochs_end(const State& state, Time now) {
  Epoch end = state.next_epoch;
  for (const auto& stream : state.streams) {
    if (stream == nullptr) continue;
    for (const auto& [name, producer] : stream->producers) {
      if (producer.is_forgotten(now)) continue;
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
  if (auto full = check_growth(turn.state(), turn.state().tenants.of(op.source), before,
                               bytes_of(op.source, op.to))) {
    return Refused{*std::move(full)};
  }
  turn.emit(PositionMoved{op.source, op.to, op.epoch});
  return Done{};
}

void apply_rest(State& state, const PositionMoved& fact, base::Where, Time, Undo* undo) {
  const Position* known = state.positions.find(fact.source);
  Position before = known == nullptr ? Position{} : *known;
  Tenant& tenant = state.tenants.of(fact.source);
  record(undo, [name = std::string(fact.source), before, was_made = known == nullptr,
                whose = &tenant, size = fact.value.size()](State& s) mutable {
    s.shrink(*whose, size + (was_made ? kNodeBytes + name.size() : 0));
    s.grow(*whose, before.value.size());
    if (was_made) {
      s.positions.erase(name);
    } else {
      s.positions.set(name, std::move(before));
    }
  });
  if (known == nullptr) state.grow(tenant, kNodeBytes + fact.source.size());
  state.grow(tenant, fact.value.size());
  state.shrink(tenant, before.value.size());
  state.positions.set(std::string(fact.source), Position{std::string(fact.value), fact.epoch});
}

// What was lost may include ids, and numbers that somebody holds as proof: nobody may be told that
// an older id is surely new, and no fence, epoch, token or version of a
// register that is made may be given out twice.
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
    s.version_floor.value -= lost;
    s.next_epoch = epoch;
    s.first_token.value -= lost * limits::kReceiveMax;
    for (auto& [uid, consumer] : s.consumers)
      consumer.next_token.value -= lost * limits::kReceiveMax;
  });
  state.next_fence.value += lost;
  state.version_floor.value += lost;
  state.next_epoch = Epoch{epochs_end(state, now).value + lost};
  state.first_token.value += lost * limits::kReceiveMax;
  for (auto& [uid, consumer] : state.consumers)
    consumer.next_token.value += lost * limits::kReceiveMax;
}

}  // namespace hapax::core
