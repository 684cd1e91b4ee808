#include "core/state_codec.h"

#include <algorithm>
#include <memory>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/histories_test.h"
#include "core/test_ops.h"
#include "core/test_store.h"
#include "core/test_tell.h"

namespace hapax::core {
namespace {

using rig::Dice;
using rig::MemoryStore;

// A step is a seed, so that a failing run shrinks to the batches it needs.
using Steps = std::vector<std::uint64_t>;

std::string encoded(State& state) {
  std::string bytes;
  encode_state(state, bytes);
  return bytes;
}

// What a restart from a snapshot finds.
std::unique_ptr<State> restored(MemoryStore& store) {
  auto state = std::make_unique<State>(4);
  const Status decoded = decode_state(encoded(store.state), *state);
  if (!decoded.ok()) RC_FAIL(decoded.error().text());
  rig::copy_remembered(store.state.ids, state->ids, store.now);
  rig::copy_remembered(store.state.settled, state->settled, store.now);
  return state;
}

// The store gives out epochs above the highest that a producer may choose: they are possible.
TEST(StateCodec, AnEpochAboveAllThatMayBeChosenIsReadBack) {
  State state(4);
  state.next_epoch = Epoch{limits::kEpochMax + 1'000'000};
  State read(4);
  const Status decoded = decode_state(encoded(state), read);
  ASSERT_TRUE(decoded.ok()) << decoded.error().text();
  EXPECT_EQ(read.next_epoch, state.next_epoch);
}

TEST(Rig, MakesEveryKindOfFact) {
  std::vector<std::size_t> kinds(std::variant_size_v<Fact> + 1);
  MemoryStore store;
  for (std::uint64_t seed = 0; seed < 6'000; ++seed) {
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
  const auto seed = rc::gen::resize(100, rc::gen::arbitrary<std::uint64_t>());
  return *rc::gen::scale(2.0, rig::histories<std::uint64_t>(seed));
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

  // No field was forgotten, and what is rebuilt is what was maintained fact by fact.
  rig::collect_all(store.state, store.now);
  rig::collect_all(*copy, store.now);
  RC_ASSERT(rig::difference(rig::told(*copy), rig::told(store.state)) == "");
}

// B1: the bytes do not depend on when the dead were carried away.
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
  RC_ASSERT(rig::difference(rig::told(replayed), rig::told(store.state)) == "");
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
    const std::string told_before = rig::told(store.state);
    const auto groups_due = store.state.groups_due;
    const auto producers_due = store.state.producers_due;
    Dice dice(~step);
    rig::fill_batch(store, dice);
    store.roll_back();
    RC_ASSERT(canonical(store.state, before_now) == before);
    RC_ASSERT(rig::difference(rig::told(store.state), told_before) == "");
    RC_ASSERT(store.state.groups_due == groups_due);
    RC_ASSERT(store.state.producers_due == producers_due);
    store.now = before_now;
  }
}

// K6: that the lease of a claim ran out, which a refused claim may find.
bool says_only_that_a_claim_lapsed(const MemoryStore& store) {
  const auto& frames = store.journal.batches().back().frames;
  return std::all_of(frames.begin(), frames.end(), [](const auto& frame) {
    return std::holds_alternative<ClaimLapsed>(*decode_fact(frame.bytes));
  });
}

// I15: a commit that is refused leaves nothing behind, neither in the state nor in the journal.
RC_GTEST_PROP(Undo, OfARefusedCommitGivesTheStateBeforeIt, ()) {
  MemoryStore store;
  for (const std::uint64_t step : some_steps()) {
    live_through(store, step);
    Dice dice(~step);
    store.begin(Duration{dice.below(3'000)});
    const std::string before = canonical(store.state, store.now);
    const std::string told_before = rig::told(store.state);
    const rig::RandomCommit random(store.state, store.now, dice);
    const Executed executed = store.commit(random.commit());
    const auto* answer = std::get_if<Answer>(&executed);
    if (answer == nullptr || !answer->committed) {
      RC_ASSERT(says_only_that_a_claim_lapsed(store));
      store.roll_back();
      RC_ASSERT(canonical(store.state, store.now) == before);
      RC_ASSERT(rig::difference(rig::told(store.state), told_before) == "");
    }
    store.keep();
  }
}

// --- the format ----------------------------------------------------------------------------------

// A store with a little of everything.
void furnish(MemoryStore& store) {
  store.begin(Duration{0});
  const std::vector<Op> ops = {
      CreateStream{"orders", {}},
      Append{.stream = "orders", .payload = "one", .id = "i1", .group = "g"},
      Append{.stream = "orders", .payload = "two", .group = "g"},
      Append{.stream = "orders",
             .payload = "three",
             .producer = ProducerMark{"p", Epoch{3}, ProducerSequence{0}}},
      Append{.stream = "orders", .payload = "four", .group = "g"},
      Receive{.stream = "orders", .consumer = "c", .max = 2, .owner = "w1"},
      Ack{"orders", "c", {Sequence{3}, Token{2}}},
      Claim{.scope = "s", .key = "k1", .content = "x", .owner = "w2"},
      Claim{.scope = "s", .key = "k2", .content = "y", .owner = "w2"},
      Settle{.scope = "s", .key = "k2", .fence = Fence{2}, .result = {200, "h", "body"}},
      Advance{.source = "kafka", .to = "42", .epoch = Epoch{1}},
      Set{.name = "r", .value = "v"},
      Begin{.transaction = "t"},
      CreateStream{"gone", {}},
      DeleteStream{"gone"},
  };
  const Executed done = store.commit({.ops = ops, .id = "first"});
  ASSERT_TRUE(std::get<Answer>(done).committed);
  const std::vector<Op> staged = {Set{.name = "r", .value = "later"}};
  const TransactionRef t{"t", Epoch{1}};
  const Executed waits = store.commit({.ops = staged, .transaction = t});
  ASSERT_TRUE(std::get<Answer>(waits).committed);
  store.keep();
}

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

// If this fails the format has changed: that needs a new version, and docs/internals to say so.
TEST(StateCodec, WritesTheBytesOfTheDocumentedFormat) {
  MemoryStore store;
  furnish(store);
  EXPECT_EQ(hex(encoded(store.state)),
            "02020101066f726465727380510100000000010000000080804000e807904e0068e5cf8b01000000"
            "68e5cf8b0100000104f701010104400262f70100202c36964ce81102a22c36964ce81102a2000000"
            "00000000002c36964ce81102a200000100012c36964ce81102a204010170030100000000ffffffff"
            "ffffff7f01066d7a27e5b643d67d4ad468f22d9a895900020101010101630a000001904e04030100"
            "01027731010100010130dde5cf8b0100000068e5cf8b0100000068e5cf8b01000000012c36964ce8"
            "1102a201010103000204015a392375c9799f6c13d6e4087fb75085000173026b312c98f91af3943f"
            "89cf34f0a9908f78f10277320001010068e5cf8b01000030dde5cf8b010000805101008051010000"
            "0001056b61666b61023432010068e5cf8b01000000000001447aaec5ce468a976e4991a77bf8682b"
            "01720176010068e5cf8b0100000000ffffffffffffff7f020101740101006052e6cf8b0100000143"
            "00020100447aaec5ce468a976e4991a77bf8682b0000000000000000000000000000000000040172"
            "056c6174657200000000000000000000000000000000000000000000000001008040d58b01000001"
            "01ad010101a403");
}

std::string unhex(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); at += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(text.substr(at, 2)), nullptr, 16)));
  }
  return bytes;
}

// The same state as version 1 wrote it, up to the number of the next consumer, and from there on.
constexpr std::string_view kVersion1Front =
    "01020101066f726465727380510100000000010000000080804000e807904e0068e5cf8b01000000"
    "68e5cf8b0100000104f701010104400262f70100202c36964ce81102a22c36964ce81102a2000000"
    "00000000002c36964ce81102a200012c36964ce81102a20401017003010000000001066d7a27e5b6"
    "43d67d4ad468f22d9a89590002";
constexpr std::string_view kVersion1Back =
    "01010101630a000001904e0403010001027731010100010130dde5cf8b0100000068e5cf8b010000"
    "0068e5cf8b01000000012c36964ce81102a201010103000204015a392375c9799f6c13d6e4087fb7"
    "5085000173026b312c98f91af3943f89cf34f0a9908f78f10277320001010068e5cf8b01000030dd"
    "e5cf8b010000805101008051010001056b61666b61023432010068e5cf8b01000000000001447aae"
    "c5ce468a976e4991a77bf8682b01720176010068e5cf8b0100000000ffffffffffffff7f02010174"
    "0101006052e6cf8b01000001400100447aaec5ce468a976e4991a77bf8682b000000000000000000"
    "0000000000000000040172056c617465720000000000000000000000000000000000000000000000"
    "01008040d58b0100000101a80101019f03";

// Between the two some programs wrote the first token of the next consumer.
TEST(StateCodec, ReadsBothShapesOfVersion1) {
  for (const std::string_view between : {"", "01"}) {
    std::string text(kVersion1Front);
    text.append(between).append(kVersion1Back);
    State read(4);
    const Status decoded = decode_state(unhex(text), read);
    ASSERT_TRUE(decoded.ok()) << decoded.error().text();
    EXPECT_EQ(read.first_token, Token{1});
    EXPECT_EQ(read.consumers.size(), 1U);
    EXPECT_EQ(read.transactions.at("t").staged_ops, 1U);
    State again(4);
    EXPECT_TRUE(decode_state(encoded(read), again).ok());
    EXPECT_EQ(encoded(again), encoded(read));
  }
}

// What a decoder says about a state that was broken before it was written.
struct Damage {
  const char* name;
  void (*inflict)(State& state);
  const char* complaint;
};

Stream& orders(State& state) { return *state.streams.at(0); }
Consumer& consumer(State& state) { return state.consumers.begin()->second; }
OpenClaim& claim(State& state) {
  return *std::const_pointer_cast<OpenClaim>(rig::ordered(state.open_claims).begin()->second);
}
Register& set_register(State& state) {
  return *std::const_pointer_cast<Register>(rig::ordered(state.registers).begin()->second);
}
Transaction& transaction(State& state) { return state.transactions.begin()->second; }

const Damage kDamages[] = {
    {"StreamBytes", [](State& s) { ++orders(s).bytes; }, "stream 1, from byte 4 on, counts "},
    {"StreamFirst", [](State& s) { orders(s).first = {}; }, "cannot keep records 0 to 4"},
    {"StreamLast", [](State& s) { ++orders(s).last.value; }, "keeps records 1 to 5 but has runs"},
    {"StreamTime", [](State& s) { orders(s).horizon_floor = Time::max(); }, "an impossible time"},
    {"RunHole", [](State& s) { ++orders(s).runs.edit(0).first.value; }, "but has runs from 2 to 5"},
    {"RunMissing", [](State& s) { orders(s).runs.edit(0).count = 0; }, "but has runs from 5 to 4"},
    {"RunTooLong", [](State& s) { orders(s).runs.edit(0).count = 65; },
     "an impossible run, number 0"},
    {"RunGroups", [](State& s) { orders(s).runs.edit(0).groups.pop_back(); }, "impossible run"},
    {"RunWithoutGroups", [](State& s) { orders(s).runs.edit(0).groups.assign(4, 0); },
     "impossible run"},
    {"RunLargest", [](State& s) { orders(s).runs.edit(0).largest = 1; }, "impossible run"},
    {"Removed", [](State& s) { orders(s).removed.add(Sequence{5}); }, "beyond its last one"},
    {"AddressedBehindTheLast", [](State& s) { orders(s).addressed.emplace(Sequence{99}, "c"); },
     "has a record for one consumer beyond its last"},
    {"AddressedToNobody", [](State& s) { orders(s).addressed.emplace(Sequence{3}, ""); },
     "does not parse"},
    {"PendingForAnother",
     [](State& s) { orders(s).addressed.emplace(consumer(s).pending.begin()->first, "another"); },
     "with another consumer that it is for"},
    {"GroupsEndBehindTheLast",
     [](State& s) { orders(s).groups_end.emplace(time_from_ms(1), Sequence{99}); },
     "forgets group keys that it cannot have"},
    {"GroupsOfNobody", [](State& s) { orders(s).has_groups = false; },
     "knows group keys that it cannot have"},
    {"ProducerForgottenAtWork",
     [](State& s) { orders(s).producers["p"].forgotten_at = time_from_ms(1); },
     "forgets producer 'p' at an impossible time"},
    {"GroupLast", [](State& s) { orders(s).group_last.set(7, Sequence{5}); },
     "has record 5 as the last of a group; its own last is 4"},
    {"ProducerAhead", [](State& s) { orders(s).producers["p"].stored[0].at.value = 9; },
     "an impossible producer, 'p'"},
    {"ProducerRetired", [](State& s) { orders(s).producers["p"].retired = true; },
     "an impossible producer, 'p'"},
    {"ProducerTime", [](State& s) { orders(s).producers["p"].stored[0].time = Time::max(); },
     "an impossible producer, 'p'"},
    {"ProducerNext", [](State& s) { orders(s).producers["p"].next = {}; },
     "an impossible producer, 'p'"},
    {"ConsumerOfNothing", [](State& s) { consumer(s).stream = StreamUid{2}; },
     "consumer 1, from byte 146 on, belongs to stream 2, which does not exist"},
    {"ConsumerUid", [](State& s) { s.next_consumer = ConsumerUid{1}; }, "after next_consumer, 1"},
    {"Token", [](State& s) { consumer(s).pending.at(Sequence{1}).token = Token{3}; },
     "has record 1 with an impossible state"},
    {"Owner", [](State& s) { consumer(s).pending.at(Sequence{1}).owner = nullptr; },
     "has record 1 with an impossible state"},
    {"Due", [](State& s) { consumer(s).pending.at(Sequence{1}).due = Time::min(); },
     "has record 1 with an impossible state"},
    {"PastAttempt",
     [](State& s) {
       PastAttempt beyond;
       beyond.attempt = 2;
       auto past = std::make_shared<PastAttempts>(1, beyond);
       consumer(s).pending.at(Sequence{1}).past = std::move(past);
     },
     "consumer 1, from byte 146 on, does not parse"},
    {"Group", [](State& s) { orders(s).runs.edit(0).groups[1] = 7; },
     "has record 2 with another group than in its stream"},
    {"AckedTokens", [](State& s) { consumer(s).acked_tokens.add(Sequence{1}); },
     "tokens it cannot have given, from record 1 on"},
    {"ClaimFences",
     [](State& s) {
       s.open_claims.set(base::spread(99), std::make_shared<const OpenClaim>(claim(s)));
     },
     "has the fence of another one"},
    {"ClaimState", [](State& s) { claim(s).state = ClaimState::kCompleted; },
     "open claim 1, from byte 211 on, is completed"},
    {"Fence", [](State& s) { s.next_fence = Fence{1}; }, "has fence 1; the next one is 1"},
    {"Lease", [](State& s) { claim(s).lease_until = time_from_ms(std::int64_t{1} << 50); },
     "an impossible time"},
    {"Register", [](State& s) { s.hybrid = {}; }, "'r', was set in the future"},
    {"RegisterEnd",
     [](State& s) {
       s.version_floor = Version{1};
       set_register(s).expires_at = time_from_ms(std::int64_t{1} << 50);
     },
     "'r', goes at an impossible time"},
    {"RegisterVersion", [](State& s) { set_register(s).expires_at = time_from_ms(1); },
     "'r', may go, and its version could come again"},
    {"TransactionEpoch", [](State& s) { s.next_epoch = {}; }, "'t', has epoch 1; the next"},
    {"TransactionOver", [](State& s) { transaction(s).open = false; }, "is over and has op"},
    {"TransactionBoth", [](State& s) { transaction(s).committed = true; }, "open and committed"},
    {"Staged", [](State& s) { transaction(s).staged.emplace_back("?"); }, "do not parse"},
};

TEST(StateCodec, SaysWhatIsWrongAndWhere) {
  for (const Damage& damage : kDamages) {
    MemoryStore store;
    furnish(store);
    damage.inflict(store.state);
    State into(4);
    const Status decoded = decode_state(encoded(store.state), into);
    ASSERT_FALSE(decoded.ok()) << damage.name;
    EXPECT_EQ(decoded.error().code, Errc::kCorruption) << damage.name;
    EXPECT_NE(decoded.error().detail.find(damage.complaint), std::string::npos)
        << damage.name << ": " << decoded.error().detail;
  }
}

TEST(StateCodec, ComparesTheLiveBytesWithWhatLiesThere) {
  MemoryStore store;
  furnish(store);
  std::string bytes = encoded(store.state);
  ++bytes.back();  // The bytes of the last segment.
  State into(4);
  const Status decoded = decode_state(bytes, into);
  ASSERT_FALSE(decoded.ok());
  EXPECT_NE(decoded.error().detail.find("bytes in segment 1; its runs and results have"),
            std::string::npos)
      << decoded.error().detail;
}

// Version 1 of answers and staged operations had no version among its bytes.
TEST(Codecs, ReadTheFirstVersion) {
  Answer answer;
  answer.committed = true;
  answer.time = time_from_ms(5);
  answer.verdicts = {Appended{Sequence{7}}};
  std::string bytes;
  encode_answer(answer, bytes);
  EXPECT_EQ(bytes.front(), '\x03');
  bytes.front() = '\x01';
  EXPECT_EQ(decode_answer(bytes).value(), answer);
  bytes.front() = '\x05';
  EXPECT_EQ(decode_answer(bytes).error().code, Errc::kCorruption);
  EXPECT_EQ(decode_answer("").error().code, Errc::kCorruption);

  const Op op = Unset{.name = "n"};
  const std::vector<StreamUid> kNone(1);
  std::string staged;
  ASSERT_FALSE(encode_staged({&op, 1}, std::vector<OpHashes>(1), kNone, staged));
  EXPECT_EQ(staged.substr(0, 3), std::string("\0\x02\x01", 3));
  EXPECT_EQ(staged_count(staged), 1U);
  const std::string first = staged.substr(2, staged.size() - 3);  // It has no stream, either.
  EXPECT_EQ(staged_count(first), 1U);
  EXPECT_EQ(decode_staged(first).value().ops.size(), 1U);
  EXPECT_EQ(decode_staged(std::string(1, '\0')).value().ops.size(), 0U);
  staged[1] = '\x03';
  EXPECT_EQ(decode_staged(staged).error().code, Errc::kCorruption);
}

TEST(StateCodec, RefusesAVersionItDoesNotKnow) {
  State into(4);
  const Status decoded = decode_state("\x03", into);
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().code, Errc::kFormatVersion);
}

TEST(StateCodec, AnEmptyStateHasNothingToSay) {
  State empty(4);
  const std::string bytes = encoded(empty);
  State into(4);
  EXPECT_TRUE(decode_state(bytes, into).ok());
  EXPECT_EQ(encoded(into), bytes);
  EXPECT_LT(bytes.size(), 32U);
}

// --- damaged bytes -------------------------------------------------------------------------------

std::string lived_in() {
  MemoryStore store;
  for (std::uint64_t step = 0; step < 300; ++step) live_through(store, step);
  return encoded(store.state);
}

// B2
TEST(StateCodec, RefusesEveryPieceOfAState) {
  const std::string bytes = lived_in();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    State into(1);
    const Status decoded = decode_state(std::string_view(bytes).substr(0, size), into);
    ASSERT_FALSE(decoded.ok()) << size << " of " << bytes.size() << " bytes";
    EXPECT_EQ(decoded.error().code, Errc::kCorruption);
  }
  State into(1);
  EXPECT_FALSE(decode_state(bytes + '\0', into).ok()) << "a byte too many";
}

// B2: what is accepted although it was damaged is at least a state: it can be written and read.
void decode_damaged(const std::string& bytes) {
  State state(1);
  if (!decode_state(bytes, state).ok()) return;
  const std::string again = encoded(state);
  State copy(1);
  const Status decoded = decode_state(again, copy);
  ASSERT_TRUE(decoded.ok()) << decoded.error().text();
  EXPECT_EQ(encoded(copy), again);
  EXPECT_EQ(rig::difference(rig::told(copy), rig::told(state)), "");
}

TEST(StateCodec, SurvivesEveryDamagedByte) {
  const std::string whole = lived_in();
  Dice dice(7);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1U << dice.below(8)));
    decode_damaged(bytes);
    bytes[at] = static_cast<char>(dice.below(256));
    decode_damaged(bytes);
    bytes[dice.below(bytes.size())] = dice.one_in(2) ? '\xff' : '\x00';
    decode_damaged(bytes);
  }
}

}  // namespace
}  // namespace hapax::core
