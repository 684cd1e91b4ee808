// Random histories of several workers, consumers and people: against a model, against what must
// hold whatever happens, and against their own undoing.
#include "core/consumers_model.h"

#include <map>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/consumers_harness.h"
#include "core/histories_test.h"

namespace hapax::core {
namespace {

// --- one history -------------------------------------------------------------------------------

enum class Act {
  kAppend,
  kReceive,
  kAck,
  kNack,
  kExtend,
  kAnyReceipt,
  kPass,
  kTrim,
  kSeek,
  kRedrive
};
constexpr Act kActs[] = {Act::kAppend,  Act::kAppend,  Act::kAppend,     Act::kReceive,
                         Act::kReceive, Act::kReceive, Act::kAck,        Act::kAck,
                         Act::kAck,     Act::kNack,    Act::kNack,       Act::kExtend,
                         Act::kPass,    Act::kPass,    Act::kAnyReceipt, Act::kAnyReceipt,
                         Act::kTrim,    Act::kRedrive, Act::kRedrive,    Act::kSeek};
struct Step {
  std::size_t act = 0;
  std::uint32_t which = 0;
  std::uint32_t choice = 0;
};
std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << '{' << step.act << ", " << step.which << ", " << step.choice << '}';
}

rc::Gen<std::vector<Step>> any_steps() {
  const auto step = rc::gen::build<Step>(
      rc::gen::set(&Step::act, rc::gen::inRange<std::size_t>(0, std::size(kActs))),
      rc::gen::set(&Step::which, rc::gen::inRange<std::uint32_t>(0, 1 << 16)),
      rc::gen::set(&Step::choice, rc::gen::inRange<std::uint32_t>(0, 1 << 16)));
  return rc::gen::scale(8.0, rig::histories<Step>(rc::gen::resize(100, step)));
}

struct Side {
  const char* stream;
  const char* consumer;
  ConsumerSettings settings;
};
const std::vector<Side> kSides = {
    {"orders", "first", {.attempts_max = 1}},
    {"orders",
     "second",
     {.attempts_max = 2,
      .last_attempt = LastAttempt::kBlock,
      .start = Sequence{2},
      .in_flight_max = 3}},
    {"orders.dead", "clerk", {.attempts_max = 2, .last_attempt = LastAttempt::kBlock}},
    {"orders.dead", "auditor", {.attempts_max = 2}},
};

bool agree(const Verdict& real, const Verdict& expected) {
  const auto* refused = std::get_if<Refused>(&real);
  const auto* wanted = std::get_if<Refused>(&expected);
  if (refused == nullptr || wanted == nullptr) return real == expected;
  return refused->error.code == wanted->error.code;
}

bool changes_nothing(const Verdict& verdict) {
  return std::holds_alternative<Stale>(verdict) || std::holds_alternative<Refused>(verdict);
}

class Play {
 public:
  ConsumersHarness store;
  ModelStream orders{"orders", {}, 1};
  ModelStream dead{"orders.dead", {}, 1};
  ModelStream dead_twice{"orders.dead.dead", {}, 1};
  std::vector<ModelConsumer> models;
  std::map<std::string, int> seen;  // verdicts, so that a history in which nothing happens shows

  Play() {
    store.emit(StreamMade{StreamUid{2}, "orders.dead", StreamSettings{}});
    append(Step{});  // One consumer starts behind it.
    for (const Side& side : kSides) {
      const bool first = std::string_view(side.stream) == "orders";
      models.emplace_back(side.consumer, first ? orders : dead, first ? dead : dead_twice,
                          side.settings);
      store.create(side.consumer, side.settings, side.stream);
    }
    handed_.resize(kSides.size());
    pass(Duration{0});
  }

  void take(const Step& step) {
    const std::size_t side = step.which % kSides.size();
    switch (kActs[step.act]) {
      case Act::kAppend:
        return append(step);
      case Act::kReceive:
        return receive(side, 1 + step.choice % 4, step.choice % 3);
      case Act::kAck:
      case Act::kNack:
      case Act::kExtend:
      case Act::kAnyReceipt:
        return use_receipt(side, step);
      case Act::kPass:
        return pass(Duration{step.choice % 60});
      case Act::kTrim:
        return trim(step);
      case Act::kSeek:
        return seek(side, step.choice % 12);
      case Act::kRedrive:
        return redrive(dead.first + step.choice % 4,
                       step.which % 3 == 0 ? RedriveTo::kAll : RedriveTo::kConsumer);
    }
  }

  void receive(std::size_t side, std::uint32_t max, std::uint32_t worker) {
    const Side& of = kSides[side];
    const std::string owner = "w" + std::to_string(worker);
    const Duration lease{20 + 10 * worker};
    const Verdict expected = models[side].receive(max, lease, owner);
    const Verdict real = store.run(Receive{of.stream, of.consumer, max, lease, owner});
    check(real, expected);
    for (const Delivery& each : std::get<Received>(real).deliveries) note(side, each);
  }
  void pass(Duration span) {
    store.pass(span);
    for (ModelConsumer& model : models) model.now = store.now;
  }
  void ack_all(std::size_t side) {
    for (const Receipt receipt : handed_[side]) {
      const Side& of = kSides[side];
      const Verdict expected = models[side].ack(receipt);
      check(store.ack(of.consumer, receipt, of.stream), expected);
    }
  }

  void check_dead_letters() {
    check_records(dead);
    if (!dead_twice.records.empty()) check_records(dead_twice);
    check_records(orders);
  }

 private:
  void append(const Step& step) {
    const std::vector<std::string> groups = {"", "a", "b", "c"};
    const std::string payload = "p" + std::to_string(orders.records.size() + 1);
    store.append(groups[step.choice % 4], payload);
    orders.records.push_back({groups[step.choice % 4], payload, {}, false});
  }
  void use_receipt(std::size_t side, const Step& step) {
    const Act act = kActs[step.act];
    Receipt receipt{Sequence{step.choice % 9}, Token{step.choice % 7}};
    if (!handed_[side].empty() && act != Act::kAnyReceipt) {
      // The latest ones are the valid ones, mostly.
      const std::size_t back = std::min<std::size_t>(step.choice % 6, handed_[side].size() - 1);
      receipt = handed_[side][handed_[side].size() - 1 - back];
    } else if (!handed_[side].empty() && step.choice % 3 != 0) {
      receipt = handed_[side][step.choice % handed_[side].size()];
    }
    const Side& of = kSides[side];
    const std::string before = dump_consumers(store.state);
    const bool nacks = act == Act::kNack || (act == Act::kAnyReceipt && step.choice % 2 == 0);
    if (nacks) {
      const Duration delay{step.choice % 2 == 0 ? 0 : 25};
      const std::string reason = step.choice % 5 == 0 ? "" : "r" + std::to_string(step.choice);
      const bool last = step.choice % 7 == 0;
      const Verdict expected = models[side].nack(receipt, delay, reason, last);
      check(store.nack(of.consumer, receipt, delay, reason, of.stream, last), expected, before);
    } else if (act == Act::kExtend) {
      const Verdict expected = models[side].extend(receipt, Duration{40});
      check(store.extend(of.consumer, receipt, Duration{40}, of.stream), expected, before);
    } else {
      const Verdict expected = models[side].ack(receipt);
      const Verdict real = store.ack(of.consumer, receipt, of.stream);
      check(real, expected, before);
      if (std::holds_alternative<Done>(real)) note_ack(side, receipt);
    }
  }
  void trim(const Step& step) {
    ModelStream& stream = step.which % 2 == 0 ? orders : dead;
    const std::uint64_t end = stream.records.size() + 1;
    const std::uint64_t before = std::min(stream.first + step.choice % 4, end);
    store.run(Trim{stream.name, Sequence{before}});
    stream.first = std::max(stream.first, before);
  }
  void seek(std::size_t side, std::uint64_t to) {
    const Verdict expected = models[side].seek(to);
    check(store.run(Seek{kSides[side].stream, kSides[side].consumer, Sequence{to}}), expected);
    if (std::holds_alternative<Refused>(expected)) return;
    acked_with_.erase(side);
    reached_.erase(side);
    held_.erase(side);
  }
  void redrive(std::uint64_t at, RedriveTo to) {
    const Verdict real = store.redrive(Sequence{at}, to);
    if (!dead.keeps(at)) return check(real, Refused{{Errc::kNotFound, ""}});
    ModelRecord back = dead.records[at - 1];
    back.lineage->to = to;
    ++back.lineage->redrives;
    const std::tuple failure{back.lineage->sequence, back.lineage->redrives,
                             to == RedriveTo::kAll ? "" : back.lineage->consumer};
    const auto [put_back, fresh] =
        put_back_.try_emplace(failure, Duplicate{Sequence{orders.records.size() + 1}, store.now,
                                                 limits::kWindowDefault.end(store.now)});
    if (fresh) orders.records.push_back(back);
    dead.records[at - 1].removed = true;
    if (at == dead.first) {
      while (dead.first <= dead.records.size() && dead.records[dead.first - 1].removed) {
        ++dead.first;
      }
    }
    models[2].removed(at);
    models[3].removed(at);
    if (fresh) return check(real, Appended{Sequence{orders.records.size()}});
    check(real, put_back->second);  // C10
  }

  void check(const Verdict& real, const Verdict& expected, const std::string& before = "") {
    ++seen[std::string(word_of(real))];
    RC_ASSERT(word_of(real) == word_of(expected));
    RC_ASSERT(agree(real, expected));
    if (!before.empty() && changes_nothing(real)) {
      RC_ASSERT(dump_consumers(store.state) == before);  // C2
    }
  }
  // What a worker sees, without the model's idea of why.
  void note(std::size_t side, const Delivery& delivery) {
    const std::uint64_t at = delivery.record.sequence.value;
    const Side& of = kSides[side];
    handed_[side].push_back({delivery.record.sequence, delivery.token});
    RC_ASSERT(!acked_with_[side].contains(at));
    const std::string group((of.stream == kSides[0].stream ? orders : dead).records[at - 1].group);
    if (group.empty()) return;
    auto& [holder, until] = held_[side][group];
    const bool free = holder == 0 || holder == at || until <= store.now || !is_held(side, holder);
    RC_ASSERT(free);  // C1
    holder = at;
    until = delivery.lease_until;
    std::uint64_t& reached = reached_[side][group];
    if (delivery.attempt == 1) RC_ASSERT(at > reached);
    reached = std::max(reached, at);
  }
  bool is_held(std::size_t side, std::uint64_t at) {
    return models[side].lines.at(at - 1).state == ModelLine::kOut;
  }
  void note_ack(std::size_t side, Receipt receipt) {
    const auto [known, first] =
        acked_with_[side].try_emplace(receipt.sequence.value, receipt.token);
    const bool same = first || known->second == receipt.token;
    RC_ASSERT(same);
  }
  void check_records(const ModelStream& model) {
    const Stream& stream = store.stream(model.name);
    RC_ASSERT(stream.last.value == model.records.size());
    for (std::uint64_t at = 1; at <= model.records.size(); ++at) {
      RC_ASSERT(stream.keeps(Sequence{at}) == model.keeps(at));
      const RecordAppended real = store.record(Sequence{at}, model.name);
      RC_ASSERT(real.payload == model.records[at - 1].payload);
      RC_ASSERT(real.lineage == model.records[at - 1].lineage);
    }
  }

  std::map<std::tuple<Sequence, std::uint32_t, std::string>, Duplicate> put_back_;
  std::vector<std::vector<Receipt>> handed_;
  std::map<std::size_t, std::map<std::uint64_t, Token>> acked_with_;
  std::map<std::size_t, std::map<std::string, std::uint64_t>> reached_;
  std::map<std::size_t, std::map<std::string, std::pair<std::uint64_t, Time>>> held_;
};

// --- what must hold in every state ---------------------------------------------------------------

void check_places(const Consumer& consumer) {
  std::map<GroupHash, Sequence> heads;
  std::set<std::pair<Time, Sequence>> due;
  std::set<std::pair<Time, Sequence>> waiting;
  for (const auto& [sequence, pending] : consumer.pending) {
    RC_ASSERT(sequence < consumer.next);
    if (pending.group != 0) RC_ASSERT(heads.emplace(pending.group, sequence).second);  // C1
    if (pending.state == PendingState::kInFlight) due.emplace(pending.due, sequence);
    if (pending.state == PendingState::kWaiting) waiting.emplace(pending.due, sequence);
  }
  RC_ASSERT(consumer.due == due);  // C5
  RC_ASSERT(consumer.waiting == waiting);
  RC_ASSERT(consumer.in_flight == due.size());
  RC_ASSERT(heads == std::map(consumer.heads.begin(), consumer.heads.end()));
  for (const auto& [group, sequence] : consumer.parked) {
    RC_ASSERT(heads.contains(group));
    RC_ASSERT(heads.at(group) < sequence);
  }
  std::size_t places = consumer.pending.size() + consumer.parked.size();
  for (Sequence at{1}; at < consumer.next; at = at.next()) {
    if (!consumer.acked.contains(at)) continue;
    ++places;
    RC_ASSERT(!consumer.pending.contains(at));
  }
  RC_ASSERT(places == consumer.next.value - 1);  // C4
  RC_ASSERT(!consumer.acked.contains(consumer.next));
}

void check_state(const State& state) {
  for (const auto& [uid, consumer] : state.consumers) check_places(consumer);
}

// Everybody works without fault until nothing is left.
void drain(Play& play) {
  for (std::size_t side = 0; side < kSides.size(); ++side) {
    const Side& of = kSides[side];
    for (int idle = 0; idle < 3;) {
      play.pass(Duration{1'000});
      const Sequence before = play.store.consumer(of.consumer, of.stream).next;
      const std::uint64_t tokens = play.store.consumer(of.consumer, of.stream).next_token.value;
      play.receive(side, 4, 0);
      play.ack_all(side);
      const Consumer& consumer = play.store.consumer(of.consumer, of.stream);
      idle = consumer.next == before && consumer.next_token.value == tokens ? idle + 1 : 0;
    }
  }
}

TEST(ConsumersModel, AnswersAsTheModelAndLosesNothing) {
  std::map<std::string, int> seen;
  const bool held = rc::check([&seen] {
    Play play;
    for (const Step& step : *any_steps()) {
      play.take(step);
      check_state(play.store.state);
    }
    play.check_dead_letters();
    drain(play);
    for (std::size_t side = 0; side < kSides.size(); ++side) {
      const Side& of = kSides[side];
      const Stream& stream = play.store.stream(of.stream);
      const Consumer& consumer = play.store.consumer(of.consumer, of.stream);
      RC_ASSERT(consumer.next > stream.last);
      RC_ASSERT(consumer.in_flight == 0U);
      for (const auto& [sequence, pending] : consumer.pending) {
        RC_ASSERT(pending.state == PendingState::kBlocked);
      }
    }
    for (const auto& [word, count] : play.seen) seen[word] += count;
  });
  EXPECT_TRUE(held);
  for (const char* word : {"records", "done", "stale", "refused", "fresh"}) {
    EXPECT_GT(seen[word], 20) << "hardly any history came to a verdict of this kind: " << word;
  }
}

// --- one history that random ones come to rarely -----------------------------------------------

// Record 2 leaves and makes room in flight; only then it is seen that record 1, which waits, is
// gone too; and only then it is the turn of record 3, which is in the same group.
TEST(ConsumersModel, WhatIsGoneLeavesUntilARecordIsFound) {
  const ConsumerSettings settings{.attempts_max = 2, .in_flight_max = 2};
  ConsumersHarness store;
  store.create("billing", settings);
  ModelStream orders{"orders", {}, 1};
  ModelStream dead{"orders.dead", {}, 1};
  ModelConsumer model("billing", orders, dead, settings);
  for (const char* group : {"a", "", "a", ""}) {
    store.append(group);
    orders.records.push_back({group, "p", {}, false});
  }
  const auto receive = [&](Duration lease) {
    model.now = store.now;
    const Received expected = model.receive(2, lease, "w1");
    const std::vector<Delivery> real = store.receive("billing", 2, lease);
    EXPECT_EQ(numbers(real), numbers(expected.deliveries));
    return numbers(real);
  };
  using Numbers = std::vector<std::uint64_t>;
  EXPECT_EQ(receive(Duration{20}), (Numbers{1, 2}));
  const Receipt first{Sequence{1}, Token{1}};
  EXPECT_TRUE(is_done(store.nack("billing", first, Duration{25})));
  EXPECT_TRUE(is_done(model.nack(first, Duration{25}, "")));
  EXPECT_EQ(receive(Duration{100}), (Numbers{4}));
  store.run(Trim{"orders", Sequence{3}});
  orders.first = 3;
  store.pass(Duration{30});
  EXPECT_EQ(receive(Duration{20}), (Numbers{3}));
}

// --- undo and replay -----------------------------------------------------------------------------

RC_GTEST_PROP(ConsumersModel, ARollBackRestoresEverythingTheFactsChanged, ()) {
  Play play;
  for (const Step& step : *any_steps()) play.take(step);
  const std::string before = dump_consumers(play.store.state);
  const ConsumersHarness::Mark mark = play.store.mark();
  for (const Step& step : *any_steps()) play.take(step);
  if (*rc::gen::arbitrary<bool>()) play.store.receive("late", 2);
  if (*rc::gen::arbitrary<bool>()) play.store.run(DeleteConsumer{"orders", "second"});
  if (*rc::gen::arbitrary<bool>()) play.store.run(DeleteStream{"orders.dead"});
  play.store.roll_back(mark);
  RC_ASSERT(dump_consumers(play.store.state) == before);
  check_state(play.store.state);
}

RC_GTEST_PROP(ConsumersModel, ReplayingTheJournalGivesTheSameState, ()) {
  Play play;
  for (const Step& step : *any_steps()) play.take(step);
  RC_ASSERT(dump_consumers(*play.store.replayed()) == dump_consumers(play.store.state));
}

}  // namespace
}  // namespace hapax::core
