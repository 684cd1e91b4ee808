#include "core/state_codec.h"

#include <memory>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/test_door.h"
#include "core/test_ops.h"

namespace hapax::core {
namespace {

using rig::Dice;
using rig::MemoryStore;

// A step is a seed, so that a failing run shrinks to the batches it needs.
using Steps = std::vector<std::uint64_t>;

std::string encoded(const State& state) {
  std::string bytes;
  encode_state(state, bytes);
  return bytes;
}

// What a restart from a snapshot finds.
std::unique_ptr<State> restored(MemoryStore& store) {
  auto state = std::make_unique<State>(4);
  const Status decoded = decode_state(encoded(store.state), *state);
  EXPECT_TRUE(decoded.ok()) << (decoded.ok() ? "" : decoded.error().text());
  rig::copy_remembered(store.state.ids, state->ids, store.now);
  rig::copy_remembered(store.state.settled, state->settled, store.now);
  return state;
}

TEST(Rig, MakesEveryKindOfFact) {
  std::vector<std::size_t> kinds(std::variant_size_v<Fact> + 1);
  MemoryStore store;
  for (std::uint64_t seed = 0; seed < 4'000; ++seed) {
    Dice dice(seed);
    rig::fill_batch(store, dice);
    store.keep();
    if (seed % 3 == 0) collect(store.state, store.now, 10);
  }
  for (const auto& batch : store.journal.batches()) {
    for (const auto& frame : batch.frames) ++kinds[static_cast<std::uint8_t>(frame.bytes[0])];
  }
  for (std::size_t kind = 1; kind < kinds.size(); ++kind) {
    EXPECT_GT(kinds[kind], 3U) << "fact of kind " << kind;
  }
}

Steps some_steps() {
  const auto seed = rc::gen::noShrink(rc::gen::resize(100, rc::gen::arbitrary<std::uint64_t>()));
  return *rc::gen::container<Steps>(seed);
}

// A batch that is kept, and now and then a collection of little or much.
void live_through(MemoryStore& store, std::uint64_t step) {
  Dice dice(step);
  rig::fill_batch(store, dice);
  store.keep();
  if (dice.one_in(3)) collect(store.state, store.now, dice.one_in(2) ? 1 : 1'000);
}

// --- there and back ------------------------------------------------------------------------------

RC_GTEST_PROP(StateCodec, ADecodedStateIsTheEncodedOne, ()) {
  MemoryStore store;
  for (const std::uint64_t step : some_steps()) live_through(store, step);
  const std::string bytes = encoded(store.state);
  const auto copy = restored(store);
  RC_ASSERT(canonical(*copy, store.now) == canonical(store.state, store.now));
  RC_ASSERT(encoded(*copy) == bytes);

  // What is rebuilt is what was maintained fact by fact.
  rig::collect_all(store.state, store.now);
  rig::collect_all(*copy, store.now);
  RC_ASSERT(rig::derived(*copy) == rig::derived(store.state));
}

// S1: the bytes do not depend on when the dead were carried away.
RC_GTEST_PROP(StateCodec, CollectingChangesNothingThatCounts, ()) {
  MemoryStore store;
  for (const std::uint64_t step : some_steps()) {
    live_through(store, step);
    const std::string before = canonical(store.state, store.now);
    Dice dice(~step);
    collect(store.state, store.now, dice.below(20));
    RC_ASSERT(canonical(store.state, store.now) == before);
  }
}

// --- replay --------------------------------------------------------------------------------------

RC_GTEST_PROP(Replay, OfTheFactsGivesTheSameState, (std::uint64_t seed)) {
  MemoryStore store;
  for (const std::uint64_t step : some_steps()) live_through(store, step);

  State replayed(4);
  Dice dice(seed);
  for (const auto& batch : store.journal.batches()) {
    rig::replay(batch, replayed);
    if (dice.one_in(2)) collect(replayed, batch.time, dice.below(1'000));
  }
  RC_ASSERT(canonical(replayed, store.now) == canonical(store.state, store.now));
  rig::collect_all(store.state, store.now);
  rig::collect_all(replayed, store.now);
  RC_ASSERT(rig::derived(replayed) == rig::derived(store.state));
}

RC_GTEST_PROP(Replay, FromASnapshotOnGivesTheSameState, (std::uint64_t seed)) {
  const Steps steps = some_steps();
  Dice dice(seed);
  const std::uint64_t snapshot_at = dice.below(steps.size() + 1);
  MemoryStore store;
  auto replayed = std::make_unique<State>(4);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    live_through(store, steps[i]);
    if (i + 1 == snapshot_at) replayed = restored(store);
  }

  const auto& batches = store.journal.batches();
  for (std::size_t i = snapshot_at; i < batches.size(); ++i) {
    rig::replay(batches[i], *replayed);
    if (dice.one_in(2)) collect(*replayed, batches[i].time, dice.below(1'000));
  }
  RC_ASSERT(canonical(*replayed, store.now) == canonical(store.state, store.now));
}

// --- undo ----------------------------------------------------------------------------------------

RC_GTEST_PROP(Undo, OfABatchGivesTheStateBeforeIt, ()) {
  MemoryStore store;
  for (const std::uint64_t step : some_steps()) {
    live_through(store, step);
    const Time before_now = store.now;
    const std::string before = canonical(store.state, before_now);
    const std::string derived_before = rig::derived(store.state);
    Dice dice(~step);
    rig::fill_batch(store, dice);
    store.roll_back();
    RC_ASSERT(canonical(store.state, before_now) == before);
    RC_ASSERT(rig::derived(store.state) == derived_before);
    store.now = before_now;
  }
}

// I15: a commit that is refused leaves nothing behind, neither in the state nor in the journal.
RC_GTEST_PROP(Undo, OfARefusedCommitGivesTheStateBeforeIt, ()) {
  MemoryStore store;
  for (const std::uint64_t step : some_steps()) {
    live_through(store, step);
    Dice dice(~step);
    store.begin(Duration{dice.below(3'000)});
    const std::string before = canonical(store.state, store.now);
    const std::string derived_before = rig::derived(store.state);
    const rig::RandomCommit random(store.state, store.now, dice);
    const Executed executed = store.commit(random.commit());
    const auto* answer = std::get_if<Answer>(&executed);
    if (answer == nullptr || !answer->committed) {
      RC_ASSERT(canonical(store.state, store.now) == before);
      RC_ASSERT(rig::derived(store.state) == derived_before);
      RC_ASSERT(store.journal.batches().back().frames.empty());
    }
    store.keep();
  }
}

}  // namespace
}  // namespace hapax::core
