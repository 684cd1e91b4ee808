#include "alerts/rule_watch.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "alerts/notice_text.h"
#include "base/format.h"

namespace hapax::alerts {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Duration kMinute{60'000};
const Subject kErp{.name = "erp"};

// Processes that share what is remembered, and look at the same moments of a simulated clock.
class World {
 public:
  explicit World(Rule rule, int processes = 1) : rule_(std::move(rule)) {
    for (int i = 0; i < processes; ++i) start();
  }

  void start() {
    watches_.push_back(std::make_unique<RuleWatch>(rule_, base::format("p{}", ++started_)));
  }
  void restart(std::size_t i = 0) {
    watches_.erase(watches_.begin() + static_cast<std::ptrdiff_t>(i));
    start();
  }
  void kill(std::size_t i) { watches_.erase(watches_.begin() + static_cast<std::ptrdiff_t>(i)); }

  // Time goes on, and every process sees this.
  World& after(Duration span, const std::vector<Observation>& all = {}) {
    return after(span, std::vector<std::vector<Observation>>(watches_.size(), all));
  }
  World& after(Duration span, const std::vector<std::vector<Observation>>& by_process) {
    now_ += span;
    for (std::size_t i = 0; i < watches_.size(); ++i) {
      watches_[i]->see(by_process[i], now_);
      RuleWatch::Turn turn = watches_[i]->judge(firings_, now_);
      EXPECT_EQ(turn.changed, turn.firings != firings_);
      firings_ = std::move(turn.firings);
      left_out_ = turn.left_out;
      for (const Notice& notice : turn.notices) {
        told_.push_back(base::format("{} {} {:g}", event_type_of(notice.kind), notice.subject.name,
                                     notice.value));
        keys_.push_back(notice.key());
      }
    }
    return *this;
  }
  // What was told since the last question.
  std::vector<std::string> told() { return std::exchange(told_, {}); }
  [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }
  [[nodiscard]] const Firings& firings() const { return firings_; }
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  Rule rule_;
  Time now_ = time_from_ms(1'000'000);
  std::vector<std::unique_ptr<RuleWatch>> watches_;
  int started_ = 0;
  Firings firings_;
  std::vector<std::string> told_;
  std::vector<std::string> keys_;
  std::uint64_t left_out_ = 0;
};

Rule rule(Duration hold = Duration{0}, Duration repeat = Duration{0}) {
  return {.id = "r", .when = Condition::kDeadLetters, .above = 2, .hold = hold, .repeat = repeat};
}
std::vector<Observation> erp(double value) { return {{kErp, value}}; }

TEST(RuleWatch, TellsOnceWhenItBeginsAndOnceWhenItEnds) {
  World world(rule());
  world.after(kMinute, erp(2));
  EXPECT_THAT(world.told(), IsEmpty());  // Not above the threshold.
  for (int i = 0; i < 10; ++i) world.after(kMinute, erp(3 + i));
  EXPECT_THAT(world.told(), ElementsAre("alert.begins erp 3"));
  for (int i = 0; i < 10; ++i) world.after(kMinute, erp(1));
  EXPECT_THAT(world.told(), ElementsAre("alert.ends erp 3"));
  EXPECT_THAT(world.firings(), IsEmpty());
  world.after(kMinute, erp(3));
  EXPECT_THAT(world.told(), ElementsAre("alert.begins erp 3"));
}

TEST(RuleWatch, MustHoldForSoLongBeforeItBeginsAndBeforeItEnds) {
  World world(rule(3 * kMinute));
  world.after(kMinute, erp(9)).after(2 * kMinute, erp(9)).after(kMinute, erp(0));
  EXPECT_THAT(world.told(), IsEmpty());
  world.after(kMinute, erp(9)).after(kMinute, erp(9)).after(kMinute, erp(9));
  EXPECT_THAT(world.told(), IsEmpty());
  world.after(kMinute, erp(9));
  EXPECT_THAT(world.told(), ElementsAre("alert.begins erp 9"));
  // One that comes back before the time is over has not ended.
  world.after(kMinute, erp(0)).after(2 * kMinute, erp(0)).after(kMinute, erp(9));
  world.after(kMinute, erp(0)).after(2 * kMinute, erp(0));
  EXPECT_THAT(world.told(), IsEmpty());
  world.after(kMinute);
  EXPECT_THAT(world.told(), ElementsAre("alert.ends erp 9"));
}

TEST(RuleWatch, RemindsOnceForEachSpan) {
  World world(rule(Duration{0}, 10 * kMinute));
  world.after(kMinute, erp(3));
  world.told();
  for (int i = 0; i < 25; ++i) world.after(kMinute, erp(4));
  EXPECT_THAT(world.told(), ElementsAre("alert.continues erp 4", "alert.continues erp 4"));
  EXPECT_THAT(std::set<std::string>(world.keys().begin(), world.keys().end()), testing::SizeIs(3));
}

TEST(RuleWatch, ARestartTellsNothingAgain) {
  World world(rule());
  world.after(kMinute, erp(3));
  world.told();
  world.restart();
  for (int i = 0; i < 10; ++i) world.after(kMinute, erp(3));
  EXPECT_THAT(world.told(), IsEmpty());
}

// The condition was over before the process came back: it is told that the alert ends.
TEST(RuleWatch, AfterARestartItEndsWhatTheOneBeforeBegan) {
  World world(rule(kMinute));
  world.after(kMinute, erp(3)).after(kMinute, erp(3));
  world.told();
  world.restart();
  world.after(Duration{1'000}).after(Duration{59'000});
  EXPECT_THAT(world.told(), IsEmpty());
  world.after(kSeenLost);
  EXPECT_THAT(world.told(), ElementsAre("alert.ends erp 3"));
}

// F1
TEST(RuleWatch, OfSeveralProcessesOneTells) {
  World world(rule(), 3);
  for (int i = 0; i < 10; ++i) world.after(kMinute, erp(3));
  EXPECT_THAT(world.told(), ElementsAre("alert.begins erp 3"));
  for (int i = 0; i < 10; ++i) world.after(kMinute, erp(0));
  EXPECT_THAT(world.told(), ElementsAre("alert.ends erp 3"));
}

// F2: what one process sees, another may not.
TEST(RuleWatch, DoesNotEndWhileOneProcessSeesIt) {
  World world(rule(), 2);
  world.after(kMinute, {erp(3), erp(0)});
  EXPECT_THAT(world.told(), ElementsAre("alert.begins erp 3"));
  for (int i = 0; i < 10; ++i) world.after(kMinute, {erp(3), erp(0)});
  world.after(kMinute, erp(3));
  for (int i = 0; i < 10; ++i) world.after(kMinute, {erp(0), erp(3)});
  EXPECT_THAT(world.told(), IsEmpty());
  world.after(kMinute, erp(0));
  EXPECT_THAT(world.told(), ElementsAre("alert.ends erp 3"));
}

TEST(RuleWatch, AProcessThatDiedHoldsNoAlert) {
  World world(rule(), 2);
  world.after(Duration{1'000}, {erp(3), erp(0)});
  world.told();
  world.kill(0);
  world.after(kSeenLost - Duration{1});
  EXPECT_THAT(world.told(), IsEmpty());
  world.after(Duration{1});
  EXPECT_THAT(world.told(), ElementsAre("alert.ends erp 3"));
}

// Of a process that dies again and again the register keeps a few names, however often it starts.
TEST(RuleWatch, RestartsDoNotFillTheRegister) {
  World world(rule());
  world.after(kMinute, erp(3));
  for (int i = 0; i < 500; ++i) {
    world.restart();
    world.after(Duration{2'000}, erp(3));
  }
  EXPECT_THAT(world.told(), ElementsAre("alert.begins erp 3"));
  EXPECT_LE(world.firings().at(kErp).seen_by.size(), kWitnessesMax + 1);
  world.after(kSeenLost).after(Duration{1'000});
  EXPECT_THAT(world.told(), ElementsAre("alert.ends erp 3"));
}

// F2, where more processes see it than the register names.
TEST(RuleWatch, DoesNotEndWhileOneOfManyProcessesSeesIt) {
  constexpr std::size_t kMany = kWitnessesMax + 3;
  World world(rule(), kMany);
  world.after(kMinute, erp(3));
  std::vector<std::vector<Observation>> last(kMany);
  last.back() = erp(3);
  for (int i = 0; i < 100; ++i) world.after(Duration{2'000}, last);
  EXPECT_THAT(world.told(), ElementsAre("alert.begins erp 3"));
  world.after(kSeenLost);
  EXPECT_THAT(world.told(), ElementsAre("alert.ends erp 3"));
}

// F4: a database that was not asked yet says neither that its outbox is well nor that it is not.
TEST(RuleWatch, WhatIsNotKnownNeitherEndsNorBegins) {
  const std::vector<Observation> unknown{{.subject = kErp, .known = false}};
  World world(rule());
  world.after(kMinute, unknown);
  EXPECT_THAT(world.told(), IsEmpty());
  world.after(kMinute, erp(3)).after(kMinute, unknown);
  world.restart();
  world.after(10 * kSeenLost, unknown).after(kMinute, erp(3));
  EXPECT_THAT(world.told(), ElementsAre("alert.begins erp 3"));
  world.after(kMinute, erp(0));
  EXPECT_THAT(world.told(), ElementsAre("alert.ends erp 3"));
}

TEST(RuleWatch, EachSubjectHasAnAlertOfItsOwn) {
  World world(rule());
  const Subject other{.tenant = "acme", .name = "crm"};
  world.after(kMinute, {{kErp, 3}, {other, 4}}).after(kMinute, {{other, 4}});
  EXPECT_THAT(world.told(),
              ElementsAre("alert.begins erp 3", "alert.begins crm 4", "alert.ends erp 3"));
}

TEST(RuleWatch, ThereAreNotMoreAtOnceThanTheRegisterHolds) {
  World world(rule());
  std::vector<Observation> many;
  for (std::size_t i = 0; i < kFiringsMax + 5; ++i) {
    many.push_back({{.name = base::format("{}", 100 + i)}, 3});
  }
  world.after(kMinute, many);
  EXPECT_EQ(world.told().size(), kFiringsMax);
  EXPECT_EQ(world.left_out(), 5U);
  // There is room for the others as soon as some have ended.
  many.erase(many.begin(), many.begin() + 5);
  world.after(kMinute, many).after(kMinute, many);
  EXPECT_EQ(world.told().size(), 10U);
  EXPECT_EQ(world.left_out(), 0U);
}

TEST(Firings, AreReadAsTheyWereWritten) {
  Firings firings;
  firings[{"acme", "a \"b\"", "c"}] = {.since = time_from_ms(1),
                                       .told = time_from_ms(2),
                                       .reminders = 3,
                                       .value = 0.1,
                                       .seen_by = {{"p1", time_from_ms(5)}}};
  firings[kErp] = {.since = time_from_ms(7), .told = time_from_ms(8), .value = 4};
  EXPECT_EQ(firings_of(text_of(firings)).value(), firings);
  EXPECT_EQ(firings_of(text_of({})).value(), Firings{});
  for (const char* text : {"", "x", "{}", R"({"firing":[{}]})", R"({"firing":3})"}) {
    EXPECT_FALSE(firings_of(text).ok()) << text;
  }
}

TEST(Notices, SayWhatIsWrong) {
  Notice notice{.subject = {"acme", "erp", ""}, .value = 3, .at = time_from_ms(1'000)};
  EXPECT_EQ(sentence_of(rule(), notice), "tenant acme, workflow erp: 3 dead letters, more than 2");
  EXPECT_EQ(json_of(rule(), notice),
            R"({"alert":"r","state":"begins","when":"dead-letters","tenant":"acme",)"
            R"("workflow":"erp","value":3,"above":2,"since":"1970-01-01T00:00:00.000Z",)"
            R"("at":"1970-01-01T00:00:01.000Z",)"
            R"("text":"tenant acme, workflow erp: 3 dead letters, more than 2"})");
  notice.kind = Notice::Kind::kEnds;
  EXPECT_EQ(sentence_of(rule(), notice),
            "tenant acme, workflow erp: not more than 2 dead letters any more");
  const Rule quota{.id = "q", .when = Condition::kQuota, .above = 0.8};
  notice = {.subject = {"acme", "storage", ""}, .value = 0.875};
  EXPECT_EQ(sentence_of(quota, notice), "tenant acme, limit storage: 87.5 % used, more than 80 %");
  const Rule gone{.id = "g", .when = Condition::kEndpointDisabled};
  notice.subject = {"", "fan", "search"};
  EXPECT_EQ(sentence_of(gone, notice),
            "workflow fan, endpoint search: disabled, nothing is sent to it");
}

TEST(Rules, WatchWhatTheyName) {
  Rule some = rule();
  EXPECT_TRUE(some.watches("acme", "erp"));
  some.names = {"erp", "orders-*"};
  EXPECT_TRUE(some.watches("", "orders-out"));
  EXPECT_FALSE(some.watches("", "erp2"));
  some.tenant = "acme";
  EXPECT_FALSE(some.watches("", "erp"));
  EXPECT_TRUE(some.watches("acme", "erp"));
}

}  // namespace
}  // namespace hapax::alerts
