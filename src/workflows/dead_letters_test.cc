#include "workflows/dead_letters.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "workflows/kept_workflow_test.h"
#include "workflows/undelivered.h"

namespace hapax::workflows {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class FoundDeadLetters : public KeptWorkflow {
 protected:
  DeadPage find(const DeadFilter& filter, const DeadRange& range = {}) {
    return find_dead_letters(&workflow_, "erp.dead", filter, range, *store_).value();
  }
  std::vector<std::string> ids(const DeadFilter& filter, const DeadRange& range = {}) {
    std::vector<std::string> ids;
    for (const DeadLetter& each : find(filter, range).letters) ids.push_back(each.record.id);
    return ids;
  }
  void die(const std::string& id, const std::string& reason) {
    append(id);
    give_up(reason);
  }
};

TEST_F(FoundDeadLetters, ByAllThatIsSaid) {
  EXPECT_THAT(ids({}), IsEmpty());
  die("o1", "HTTP 422 no such customer");
  die("o2", "given up after 5 ms and attempts (3): HTTP 503");
  die("o3", "it timed out");
  EXPECT_THAT(ids({}), ElementsAre("o1", "o2", "o3"));
  EXPECT_THAT(ids({.reason = "customer"}), ElementsAre("o1"));
  DeadFilter refused;
  refused.status = delivery::StatusRule::parse("4xx", delivery::StatusWord::kRetry);
  EXPECT_THAT(ids(refused), ElementsAre("o1"));
  refused.status = delivery::StatusRule::parse("503", delivery::StatusWord::kRetry);
  EXPECT_THAT(ids(refused), ElementsAre("o2"));
  EXPECT_THAT(ids({.sequences = {1, 3, 9}}), ElementsAre("o1", "o3"));
  EXPECT_THAT(ids({}, {.from = 2}), ElementsAre("o2", "o3"));
  EXPECT_THAT(ids({}, {.through = 2}), ElementsAre("o1", "o2"));
  EXPECT_THAT(ids({.endpoint = "nobody"}), IsEmpty());
}

TEST_F(FoundDeadLetters, APageEndsWhereTheNextOneBegins) {
  for (const char* id : {"o1", "o2", "o3"}) die(id, "bad");
  const DeadPage page = find({}, {.max = 2});
  EXPECT_THAT(page.letters, SizeIs(2));
  EXPECT_EQ(page.next, 3U);
  EXPECT_EQ(find({}, {.from = 3}).next, std::nullopt);
}

// Z31
class EverybodyFits final : public delivery::Transforming {
 public:
  Status start(const std::string&, Time, Done done) override {
    done(delivery::ReshapeOutcome(std::vector<delivery::Reshaped>{{.payload = "true"}}));
    return Ok{};
  }
};

// Whoever asks holds a thread that others need, too.
TEST_F(FoundDeadLetters, ASlowConditionEndsAPage) {
  for (int i = 0; i < 70; ++i) append(std::to_string(i));
  give_up("bad");
  EverybodyFits fits;
  EXPECT_THAT(find({.condition = &fits}).letters, SizeIs(70));
  const DeadPage page = find({.condition = &fits}, {.judge_max = Duration{0}});
  EXPECT_THAT(page.letters, SizeIs(32));
  EXPECT_EQ(page.next, 33U);
}

TEST_F(FoundDeadLetters, ArePutBackOnceWhoeverAsksAndWhateverIsLost) {
  die("o1", "bad");
  die("o2", "bad");
  const DeadPage page = find({});
  losing_->lost = 1;
  const auto lost = put_back("erp.dead", page.letters, *losing_);
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().code, Errc::kOutcomeUnknown);
  // Whoever has listed them before, too.
  const auto again = put_back("erp.dead", page.letters, *losing_);
  EXPECT_EQ(again->replayed, 0U);
  EXPECT_EQ(again->gone, 2U);
  EXPECT_THAT(again->refused, IsEmpty());
  EXPECT_THAT(find({}).letters, IsEmpty());
  EXPECT_THAT(receive(), SizeIs(2));
}

TEST_F(FoundDeadLetters, StayIfTheyCannotBePutBack) {
  die("o1", "bad");
  run(DeleteConsumer{"orders", "erp"});
  const auto replay = put_back("erp.dead", find({}).letters, *store_);
  EXPECT_EQ(replay->gone, 0U);
  ASSERT_THAT(replay->refused, SizeIs(1));
  EXPECT_EQ(replay->refused.front().sequence, 1U);
}

TEST(StatusInAReason, IsThatOfTheFirstAnswer) {
  EXPECT_EQ(status_in("HTTP 422"), 422);
  EXPECT_EQ(status_in("given up: HTTP 503 HTTP 200"), 503);
  EXPECT_EQ(status_in("HTTP 2 is old"), 0);
  EXPECT_EQ(status_in("HTTP "), 0);
  EXPECT_EQ(status_in("timed out"), 0);
}

class Undelivered : public KeptWorkflow {
 protected:
  std::vector<std::pair<std::string, UndeliveredState>> states(std::size_t max = 100) {
    std::vector<std::pair<std::string, UndeliveredState>> all;
    UndeliveredQuery query{.max = max};
    while (true) {
      auto page = find_undelivered(workflow_, query, *store_).value();
      EXPECT_LE(page.records.size(), max);
      for (auto& each : page.records) all.emplace_back(each.id, each.state);
      if (!page.next) return all;
      query.from = *UndeliveredCursor::parse(page.next->text());
    }
  }
};

TEST_F(Undelivered, IsToldInPagesOfAnySize) {
  using State = UndeliveredState;
  append("o1");
  give_up("bad");
  append("o2", "k");
  append("o3", "k");
  receive(1);
  append("o4");
  const auto all = states();
  EXPECT_THAT(all, testing::UnorderedElementsAre(
                       std::pair("o1", State::kDeadLetter), std::pair("o2", State::kInFlight),
                       std::pair("o3", State::kBehind), std::pair("o4", State::kWaiting)));
  for (const std::size_t max : {1U, 2U, 3U}) EXPECT_EQ(states(max), all);
  const auto count = count_undelivered(workflow_, {}, *store_).value();
  EXPECT_EQ(count.next, std::nullopt);
  EXPECT_THAT(count.counts, ElementsAre(1, 1, 0, 1, 0, 0, 1));
}

// A place that was read to its end is looked at again: records come to it from the others.
TEST_F(Undelivered, WhatDiesBetweenTwoPagesIsToldByTheSecond) {
  append("o1");
  append("o2");
  UndeliveredQuery query{.max = 1};
  const auto first = find_undelivered(workflow_, query, *store_).value();
  EXPECT_EQ(first.records.at(0).id, "o1");
  give_up("bad");
  query.from = first.next.value();
  query.max = 100;
  std::vector<std::string> told;
  const auto second = find_undelivered(workflow_, query, *store_).value();
  for (const auto& each : second.records) told.push_back(each.id);
  EXPECT_THAT(told, testing::Contains("o2"));
}

// So are they at the end of a page.
TEST_F(Undelivered, WhatDiesWhileAPageIsReadIsTold) {
  for (int i = 0; i < 300; ++i) append(std::to_string(i));
  losing_->scans = [&](const UnackedScan& scan) {
    if (scan.stream != "orders" || scan.from <= Sequence{1} || scan.from > Sequence{299}) return;
    for (int i = 0; i < 3; ++i) give_up("bad");
  };
  std::set<std::string> told;
  const auto page = find_undelivered(workflow_, {.max = 1'000}, *losing_).value();
  for (const auto& each : page.records) told.insert(each.id);
  EXPECT_EQ(page.next, std::nullopt);
  EXPECT_EQ(told.size(), 300U);
}

// What was begun and never confirmed, whichever guarantee holds back its repetition.
TEST_F(Undelivered, AnAttemptOfUnknownOutcomeIsUnknown) {
  workflow_.delivery.guarantee = delivery::Guarantee::kAtMostOnce;
  append("o1");
  const auto held = receive();
  const std::string key = key_for(held.front().record);
  const Verdict claimed = run(Claim{.scope = "erp.deliveries", .key = key});
  run(Settle{.scope = "erp.deliveries",
             .key = key,
             .fence = std::get<Claimed>(claimed).fence,
             .outcome = hapax::Outcome::kUnknown,
             .reason = "no answer"});
  EXPECT_THAT(states(), ElementsAre(std::pair("o1", UndeliveredState::kUnknown)));
  run(Nack{
      .stream = "orders", .consumer = "erp", .receipt = receipt_of(held.front()), .last = true});
  EXPECT_THAT(states(), ElementsAre(std::pair("o1", UndeliveredState::kUnknown)));
  run(Resolve{.scope = "erp.deliveries",
              .key = key,
              .resolution = Resolution::kNotApplied,
              .actor = "ann",
              .reason = "the endpoint says no"});
  EXPECT_THAT(states(), ElementsAre(std::pair("o1", UndeliveredState::kDeadLetter)));
}

TEST(UndeliveredCursors, AreTextsThatComeBack) {
  EXPECT_EQ(UndeliveredCursor::parse("1.2.3")->from[1], 2U);
  EXPECT_EQ(UndeliveredCursor::parse("1.2.3")->text(), "1.2.3");
  for (const char* bad : {"", "1", "1.2", "1.2.3.4", "a.b.c", "1..3"}) {
    EXPECT_EQ(UndeliveredCursor::parse(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace hapax::workflows
