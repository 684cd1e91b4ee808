#include "delivery/stager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delivery/stream_stock_test.h"
#include "sim/clock.h"

namespace hapax::delivery {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Answers when the test says so.
class HeldTransform final : public Transforming {
 public:
  Status start(const std::string& payload, Time, Done done) override {
    if (refuses) return Error{Errc::kUnavailable, "too much waits"};
    asked.emplace_back(payload, std::move(done));
    return Ok{};
  }
  void answer(std::size_t place, Result<ReshapeOutcome> outcome) {
    Done done = std::move(asked[place].second);
    asked.erase(asked.begin() + static_cast<std::ptrdiff_t>(place));
    done(std::move(outcome));
  }
  static ReshapeOutcome outputs(const std::vector<std::string>& payloads) {
    std::vector<Reshaped> all;
    for (const std::string& payload : payloads) all.push_back({.payload = payload});
    return all;
  }

  bool refuses = false;
  std::vector<std::pair<std::string, Done>> asked;
};

class StagerTest : public testing::Test {
 protected:
  StagerTest() { run(CreateStream{"orders", {}}); }

  void run(const Op& op) {
    const Answer answer = store_.commit({.ops = {&op, 1}}).value();
    ASSERT_TRUE(holds(answer.verdicts.front())) << word_of(answer.verdicts.front());
  }
  void append(const std::string& id, const std::string& group = {}) {
    Append append{.stream = "orders", .payload = id, .id = id};
    if (!group.empty()) append.group = group;
    run(append);
  }
  [[nodiscard]] static StagerSettings settings() {
    StagerSettings settings;
    settings.source = "orders";
    settings.consumer = "erp";
    settings.dead_letters = "erp.dead";
    settings.owner = "p1";
    settings.outbox = OwnStream{"erp.outbox", {}};
    settings.delivered_kept = std::chrono::hours{1};
    return settings;
  }
  static Result<std::vector<StagedRecord>> compose(const Record& record, std::uint64_t,
                                                   const std::vector<Reshaped>& outputs) {
    std::vector<StagedRecord> all;
    for (const Reshaped& output : outputs) {
      all.push_back({.stream = "erp.outbox",
                     .id = record.id + '/' + output.payload.substr(0, 20),
                     .group = record.group,
                     .headers = {{"event_type", "Order"}},
                     .payload = output.payload});
    }
    return all;
  }
  [[nodiscard]] std::unique_ptr<Stager> make(StagerSettings with = settings()) {
    return std::make_unique<Stager>(store_, clock_, std::move(with), compose, &transform_,
                                    [this](std::string_view line) { log_.emplace_back(line); });
  }
  // Until there is nothing to do.
  static void settle(Stager& stager) {
    for (int i = 0; i < 100; ++i) {
      if (stager.step().value() > Duration{0}) return;
    }
    FAIL() << "it always has something to do";
  }
  [[nodiscard]] std::vector<std::string> stored(const std::string& stream = "erp.outbox") {
    std::vector<std::string> all;
    const auto found = store_.read({.stream = stream, .max = 1'000});
    if (!found) return all;
    for (const Record& record : found->records) all.push_back(record.id);
    return all;
  }
  [[nodiscard]] std::string reason_of_dead() {
    const auto found = store_.read({.stream = "erp.dead", .max = 10});
    return found && found->records.size() == 1 ? found->records.front().lineage->reason : "";
  }

  sim::SimClock clock_;
  RuleStore store_{clock_};
  HeldTransform transform_;
  std::vector<std::string> log_;
};

TEST_F(StagerTest, StoresEachOutputWithItsHeaders) {
  append("a", "k");
  const auto stager = make();
  settle(*stager);
  transform_.answer(0, HeldTransform::outputs({"x", "y"}));
  settle(*stager);
  EXPECT_THAT(stored(), ElementsAre("a/x", "a/y"));
  const Record first = store_.record("erp.outbox", Sequence{1});
  EXPECT_EQ(first.group, "k");
  EXPECT_THAT(first.headers, ElementsAre(testing::Pair("event_type", "Order")));
  EXPECT_EQ(stager->held(), 0U);
}

TEST_F(StagerTest, WithoutATransformTheRecordIsTheOutput) {
  append("a");
  Stager stager(store_, clock_, settings(), compose);
  settle(stager);
  EXPECT_THAT(stored(), ElementsAre("a/a"));
}

// G1
TEST_F(StagerTest, OutputAndAcknowledgementAreOneCommit) {
  append("a");
  const auto stager = make();
  settle(*stager);
  transform_.answer(0, HeldTransform::outputs({"x"}));
  const std::size_t commits = store_.rules.journal.batches().size();
  settle(*stager);
  EXPECT_EQ(store_.rules.journal.batches().size(), commits + 1);
  clock_.advance(100'000);
  settle(*stager);
  EXPECT_THAT(transform_.asked, IsEmpty());
}

// G2
TEST_F(StagerTest, ALateTransformHoldsBackLaterOutputs) {
  append("a");
  append("b");
  const auto stager = make();
  settle(*stager);
  ASSERT_THAT(transform_.asked, SizeIs(2));
  transform_.answer(1, HeldTransform::outputs({"x"}));
  settle(*stager);
  EXPECT_THAT(stored(), IsEmpty());
  transform_.answer(0, HeldTransform::outputs({"x"}));
  settle(*stager);
  EXPECT_THAT(stored(), ElementsAre("a/x", "b/x"));
}

// G3
TEST_F(StagerTest, ARecordThatFailsIsADeadLetterAndOthersGoOn) {
  append("a", "k");
  append("b", "k");
  const auto stager = make();
  settle(*stager);
  transform_.answer(0, ReshapeOutcome(NotReshaped{"null (null) has no keys\n"}));
  settle(*stager);
  EXPECT_EQ(reason_of_dead(), "null (null) has no keys?");
  EXPECT_EQ(store_.record("erp.dead", Sequence{1}).payload, "a");
  transform_.answer(0, HeldTransform::outputs({}));
  settle(*stager);
  EXPECT_EQ(stager->counts().filtered, 1U);
  EXPECT_THAT(stored(), IsEmpty());
}

// G3, Z19
TEST_F(StagerTest, ARecordThatFailsBlocksItsKeyIfTheWorkflowSaysSo) {
  for (const char* id : {"a1", "a2"}) append(id, "k");
  append("b1", "m");
  StagerSettings blocks = settings();
  blocks.blocked = "erp.blocked";
  blocks.hold = Duration::max();
  const BlockTerms terms{"orders", "erp", "erp.blocked"};
  const auto listed = [&] { return list_blocked(store_, terms, 10).value(); };
  auto stager = make(blocks);
  settle(*stager);
  ASSERT_THAT(transform_.asked, SizeIs(2));
  transform_.answer(0, ReshapeOutcome(NotReshaped{"has no keys"}));
  transform_.answer(0, HeldTransform::outputs({"x"}));
  settle(*stager);
  EXPECT_THAT(stored(), ElementsAre("b1/x"));
  EXPECT_EQ(reason_of_dead(), "");
  ASSERT_THAT(listed(), SizeIs(1));
  EXPECT_EQ(listed().front().key, "k");
  EXPECT_EQ(listed().front().reason, "has no keys");
  EXPECT_THAT(log_, ElementsAre(HasSubstr("blocks its key 'k': has no keys")));
  stager = make(blocks);  // Another process, when the lease is over.
  clock_.advance(Duration{std::chrono::days{1}}.count());
  settle(*stager);
  EXPECT_THAT(transform_.asked, IsEmpty());
  ASSERT_THAT(listed(), SizeIs(1));
  ASSERT_TRUE(decide_blocked(store_, terms, listed().front(), BlockDecision::kRetry, "").value());
  clock_.advance(30'000);  // This store does not wake.
  settle(*stager);
  ASSERT_THAT(transform_.asked, SizeIs(1));
  transform_.answer(0, ReshapeOutcome(NotReshaped{"has no keys"}));
  settle(*stager);
  EXPECT_EQ(listed().front().retries, 1U);
  ASSERT_TRUE(decide_blocked(store_, terms, listed().front(), BlockDecision::kPark, "ann").value());
  clock_.advance(30'000);
  settle(*stager);
  EXPECT_EQ(reason_of_dead(), "ann");
  ASSERT_THAT(transform_.asked, SizeIs(1));
  EXPECT_EQ(transform_.asked.front().first, "a2");
}

// G3, Z19
TEST_F(StagerTest, AKeyThatIsBlockedForSomeTimeGoesOn) {
  append("a1", "k");
  append("a2", "k");
  StagerSettings blocks = settings();
  blocks.blocked = "erp.blocked";
  blocks.hold = Duration{60'000};
  const auto stager = make(blocks);
  settle(*stager);
  transform_.answer(0, ReshapeOutcome(NotReshaped{"has no keys"}));
  settle(*stager);
  clock_.advance(59'999);
  settle(*stager);
  EXPECT_THAT(transform_.asked, IsEmpty());
  clock_.advance(1);
  settle(*stager);
  EXPECT_EQ(reason_of_dead(), "has no keys");
  EXPECT_THAT(transform_.asked, SizeIs(1));
}

// G3
TEST_F(StagerTest, ATransformThatDoesNotRunCostsNoRecord) {
  append("a");
  const auto stager = make();
  transform_.refuses = true;
  for (int i = 0; i < 100; ++i) {
    settle(*stager);
    clock_.advance(1'000);
  }
  EXPECT_THAT(log_, ElementsAre(HasSubstr("too much waits")));
  transform_.refuses = false;
  settle(*stager);
  transform_.answer(0, Error{Errc::kUnavailable, "no worker can be started"});
  settle(*stager);
  clock_.advance(1'000);
  settle(*stager);
  ASSERT_THAT(transform_.asked, SizeIs(1));
  transform_.answer(0, HeldTransform::outputs({"x"}));
  settle(*stager);
  EXPECT_THAT(stored(), ElementsAre("a/x"));
  EXPECT_EQ(reason_of_dead(), "");
}

TEST_F(StagerTest, AnOutputThatTheStoreDoesNotTakeIsADeadLetterOfItsRecordOnly) {
  append("a");
  append("b");
  append("c");
  const auto stager = make();
  settle(*stager);
  transform_.answer(0, HeldTransform::outputs({"x"}));
  transform_.answer(0, HeldTransform::outputs({"x", std::string(2 << 20, 'y')}));
  transform_.answer(0, HeldTransform::outputs({"x"}));
  settle(*stager);
  EXPECT_THAT(stored(), ElementsAre("a/x", "c/x"));
  EXPECT_THAT(reason_of_dead(), HasSubstr("record of stream 'erp.outbox'"));
}

TEST_F(StagerTest, OneRecordCannotMakeMoreThanACommitTakes) {
  append("a");
  const auto stager = make();
  settle(*stager);
  transform_.answer(0, HeldTransform::outputs(std::vector<std::string>(50'001, "x")));
  settle(*stager);
  EXPECT_THAT(reason_of_dead(), HasSubstr("makes 50001 records"));
}

TEST_F(StagerTest, SomethingElseUnderTheSameKeyIsADeadLetter) {
  append("a");
  const auto stager = make();
  settle(*stager);
  run(Append{.stream = "erp.outbox", .payload = "before", .id = "a/x"});
  transform_.answer(0, HeldTransform::outputs({"x"}));
  settle(*stager);
  EXPECT_THAT(reason_of_dead(), HasSubstr("under the same key"));
}

TEST_F(StagerTest, WhatSomebodyElseHasIsNotStored) {
  append("a");
  append("b");
  const auto stager = make();
  settle(*stager);
  clock_.advance(20'000);
  const auto other = make();
  settle(*other);
  ASSERT_THAT(transform_.asked, SizeIs(4));
  for (int i = 0; i < 4; ++i) transform_.answer(0, HeldTransform::outputs({"x"}));
  settle(*stager);
  EXPECT_THAT(stored(), IsEmpty());
  EXPECT_EQ(stager->counts().lost, 2U);
  settle(*other);
  EXPECT_THAT(stored(), ElementsAre("a/x", "b/x"));
}

TEST_F(StagerTest, LeasesAreRenewedWhileATransformRuns) {
  append("a");
  const auto stager = make();
  for (int i = 0; i < 20; ++i) {
    settle(*stager);
    clock_.advance(4'000);
  }
  ASSERT_THAT(transform_.asked, SizeIs(1));
  const auto other = make();
  settle(*other);
  EXPECT_THAT(transform_.asked, SizeIs(1));
}

// Nothing is lost if its stream is not there yet.
TEST_F(StagerTest, WaitsForATargetThatIsNotThere) {
  append("a");
  const Stager::Compose to_copies =
      [](const Record& record, std::uint64_t,
         std::vector<Reshaped> outputs) -> Result<std::vector<StagedRecord>> {
    std::vector<StagedRecord> all(1);
    all.front().stream = "copies";
    all.front().id = record.id;
    all.front().payload = std::move(outputs.front().payload);
    return all;
  };
  StagerSettings with = settings();
  with.outbox.reset();
  Stager stager(store_, clock_, with, to_copies);
  for (int i = 0; i < 5; ++i) ignore(stager.step(), "the stream is not there");
  EXPECT_THAT(stager.step().error().text(), HasSubstr("copies"));
  clock_.advance(60'000);
  run(CreateStream{"copies", {}});
  settle(stager);
  EXPECT_THAT(stored("copies"), ElementsAre("a"));
}

TEST_F(StagerTest, PayloadsThatAreHeldAreBounded) {
  StagerSettings with = settings();
  with.bytes_max = 10'000;
  with.under_way_max = 4;
  const auto stager = make(with);
  for (int i = 0; i < 60; ++i) {
    run(Append{.stream = "orders", .payload = std::string(1'000, 'x'), .id = std::to_string(i)});
  }
  with.held_max = 5;
  settle(*stager);
  EXPECT_LE(stager->under_way(), 4U);
  StagerSettings narrow = with;
  narrow.owner = "p2";
  const auto few = make(narrow);
  settle(*few);
  EXPECT_LE(few->held(), 5U);
}

// Each that is under way has a copy of its payload.
TEST_F(StagerTest, WhatTransformsHoldIsCounted) {
  for (const char* id : {"a", "b", "c"}) {
    const std::string payload(4'000, *id);
    run(Append{.stream = "orders", .payload = payload, .id = id});
  }
  StagerSettings with = settings();
  with.bytes_max = 8'000;
  const auto stager = make(with);
  settle(*stager);
  EXPECT_EQ(stager->under_way(), 2U);
  transform_.answer(0, HeldTransform::outputs({"x"}));
  settle(*stager);
  EXPECT_EQ(stager->under_way(), 2U) << "one is done, and the next has begun";
  while (!transform_.asked.empty()) {
    transform_.answer(0, HeldTransform::outputs({"x"}));
    settle(*stager);
  }
  EXPECT_THAT(stored(), ElementsAre("a/x", "b/x", "c/x"));
}

TEST_F(StagerTest, WhatIsGivenBackComesAtOnce) {
  append("a");
  const auto stager = make();
  settle(*stager);
  ASSERT_TRUE(stager->stop().ok());
  const auto other = make();
  settle(*other);
  EXPECT_THAT(transform_.asked, SizeIs(2));
  transform_.answer(0, HeldTransform::outputs({"x"}));  // For the one that stopped.
  settle(*stager);
  EXPECT_THAT(stored(), IsEmpty());
}

TEST_F(StagerTest, AStreamThatWasMadeAgainIsAnotherOne) {
  append("a");
  const auto stager = make();
  settle(*stager);
  run(DeleteStream{"orders"});
  run(CreateStream{"orders", {}});
  append("b");
  clock_.advance(60'000);
  EXPECT_FALSE(stager->step().ok());
  clock_.advance(60'000);
  settle(*stager);
  ASSERT_THAT(transform_.asked, SizeIs(2));
  transform_.answer(1, HeldTransform::outputs({"x"}));
  settle(*stager);
  EXPECT_THAT(stored(), ElementsAre("b/x"));
}

// Age alone removes nothing.
TEST_F(StagerTest, WhatWasDeliveredLongAgoLeavesTheOutbox) {
  const auto stager = make();
  settle(*stager);
  for (int i = 0; i < 6; ++i) {
    run(Append{.stream = "erp.outbox", .payload = "x", .id = std::to_string(i)});
    clock_.advance(1'800'000);
  }
  const Op receive = Receive{.stream = "erp.outbox", .consumer = "erp", .max = 3};
  const Answer answer = store_.commit({.ops = {&receive, 1}}).value();
  for (const Delivery& delivery : std::get<Received>(answer.verdicts.front()).deliveries) {
    run(Ack{"erp.outbox", "erp", {delivery.record.sequence, delivery.token}});
  }
  settle(*stager);
  EXPECT_THAT(stored(), ElementsAre("3", "4", "5"));
}

}  // namespace
}  // namespace hapax::delivery
