#include "delivery/source_keeping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delivery/stream_source.h"
#include "delivery/stream_stock_test.h"
#include "sim/clock.h"

namespace hapax::delivery {
namespace {

using Kind = Settlement::Kind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr Duration kWeek{std::chrono::days{7}};

class SourceKeepingTest : public testing::Test {
 protected:
  SourceKeepingTest() { make_stream({}); }
  void make_stream(Retention retention) {
    StreamSettings settings;
    settings.retention = retention;
    run(CreateStream{"orders", settings});
  }
  void run(const Op& op) {
    const Answer answer = store_.commit({.ops = {&op, 1}}).value();
    ASSERT_TRUE(holds(answer.verdicts.front())) << word_of(answer.verdicts.front());
  }
  void append(const std::string& id, const std::string& group = {}) {
    Append append{.stream = "orders", .payload = id, .id = id};
    if (!group.empty()) append.group = group;
    run(append);
  }
  static Keeping keeping() { return {"erp.began", "erp.lost", kWeek}; }
  [[nodiscard]] std::unique_ptr<StreamSource> open(std::optional<Duration> hold = {}) {
    StreamSourceSettings settings = stream_of_world("p1");
    settings.keeping = keeping();
    settings.hold = hold;
    return std::make_unique<StreamSource>(
        store_, clock_, settings, [](const Record& record, std::uint64_t) { return record.id; },
        StreamSource::Route{}, [this](std::string_view line) { log_.emplace_back(line); });
  }
  static std::vector<Handout> take(StreamSource& source, std::vector<Settlement> settled = {},
                                   std::uint32_t room = 10) {
    return source.take({.settled = settled, .room = room, .lease = Duration{10'000}})
        .value()
        .records;
  }
  [[nodiscard]] std::uint64_t lost() {
    return find_lost(store_, {"orders", "erp", keeping()}).value().count;
  }
  [[nodiscard]] std::map<std::string, std::string> dead() {
    std::map<std::string, std::string> all;
    const core::Stream* stream = store_.rules.state.find_stream("erp.dead");
    if (stream == nullptr) return all;
    for (Sequence at = stream->first; at <= stream->last; ++at.value) {
      const Record record = store_.record("erp.dead", at);
      all.emplace(record.id, record.lineage->reason);
    }
    return all;
  }

  sim::SimClock clock_;
  RuleStore store_{clock_};
  std::vector<std::string> log_;
};

// Z24
TEST_F(SourceKeepingTest, WhatWaitsForTooLongIsADeadLetter) {
  const auto source = open();
  EXPECT_THAT(take(*source), IsEmpty());
  append("old", "k");
  clock_.advance(kWeek.count() - 1);
  append("new", "k");
  clock_.advance(1);
  EXPECT_THAT(take(*source), IsEmpty());
  const auto next = take(*source);
  ASSERT_THAT(next, SizeIs(1));
  EXPECT_EQ(next.front().record.id, "new");
  EXPECT_THAT(dead(), ElementsAre(Pair("old", HasSubstr("expired: it was not delivered within"))));
  EXPECT_THAT(log_, ElementsAre(HasSubstr("is a dead letter: expired")));
}

// It may have been there for years before somebody declared the workflow.
TEST_F(SourceKeepingTest, WhatWasThereBeforeCountsFromTheBeginningOfTheWorkflow) {
  append("old");
  clock_.advance(kWeek.count() * 50);
  EXPECT_THAT(take(*open(), {}, 0), IsEmpty());
  clock_.advance(kWeek.count() - 1);
  const auto again = open();  // Another process knows when it was.
  const auto records = take(*again);
  ASSERT_THAT(records, SizeIs(1));
  take(*again, {{records.front().number, Kind::kRetry, Duration{0}, "HTTP 503"}}, 0);
  clock_.advance(1);
  EXPECT_THAT(take(*again), IsEmpty());
  take(*again);
  EXPECT_THAT(dead(), SizeIs(1));
}

// What nobody sent in time holds up nobody.
TEST_F(SourceKeepingTest, WhatIsTooOldBlocksNoKeyAndWhatAPersonWantsIsSent) {
  const auto source = open(kWeek);
  EXPECT_THAT(take(*source), IsEmpty());
  append("a", "k");
  append("b", "k");
  const auto first = take(*source);
  ASSERT_THAT(first, SizeIs(1));
  clock_.advance(5'000);
  EXPECT_THAT(take(*source, {{first.front().number, Kind::kDead, Duration{0}, "422"}}), IsEmpty());
  clock_.advance(kWeek.count() - 1'000);
  const BlockTerms terms{"orders", "erp", "erp.blocked"};
  const auto blocked = list_blocked(store_, terms, 10).value();
  ASSERT_THAT(blocked, SizeIs(1));
  ASSERT_TRUE(decide_blocked(store_, terms, blocked.front(), BlockDecision::kRetry, "").value());
  const auto again = take(*source);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again.front().record.id, "a");
  EXPECT_THAT(take(*source, {{again.front().number, Kind::kDelivered}}), IsEmpty());
  take(*source);
  EXPECT_THAT(dead(), ElementsAre(Pair("b", HasSubstr("expired"))));
  EXPECT_THAT(list_blocked(store_, terms, 10).value(), IsEmpty());
}

// Z25
TEST_F(SourceKeepingTest, WhatTheStreamRemovesIsCountedOnceAndTold) {
  run(DeleteStream{"orders"});
  make_stream({.age = Duration{60'000}});
  const auto source = open();
  const auto other = open();
  EXPECT_THAT(take(*source), IsEmpty());
  EXPECT_THAT(take(*other), IsEmpty());
  EXPECT_THAT(log_, testing::Each(HasSubstr("what waits for longer is lost")));
  EXPECT_EQ(lost(), 0U);
  for (int i = 0; i < 5; ++i) append(base::format("r{}", i));
  log_.clear();
  run(Trim{"orders", Sequence{4}});
  EXPECT_THAT(take(*source), SizeIs(2));
  EXPECT_EQ(lost(), 3U);
  EXPECT_THAT(log_, ElementsAre(HasSubstr("removed 3 records (1 to 3) by its own retention")));
  take(*other);
  EXPECT_EQ(lost(), 3U);
  append("last");
  run(Trim{"orders", Sequence{7}});
  take(*other);
  EXPECT_EQ(lost(), 4U);
}

// Retentions are set while workflows run.
TEST_F(SourceKeepingTest, AStreamThatRemovesLaterIsSeen) {
  const auto source = open();
  EXPECT_THAT(take(*source), IsEmpty());
  StreamSettings settings;
  settings.retention = {.age = Duration{60'000}};
  run(ConfigureStream{"orders", settings});
  clock_.advance(10'000);
  EXPECT_THAT(take(*source), IsEmpty());
  for (int i = 0; i < 5; ++i) append(base::format("r{}", i));
  run(Trim{"orders", Sequence{4}});
  EXPECT_THAT(take(*source), SizeIs(2));
  EXPECT_EQ(lost(), 3U);
}

// Its trim is a person's, and nobody asks a stream that removes nothing before each take.
TEST_F(SourceKeepingTest, AStreamThatKeepsEverythingIsNotWatched) {
  const auto source = open();
  EXPECT_THAT(take(*source), IsEmpty());
  for (int i = 0; i < 5; ++i) append(base::format("r{}", i));
  run(Trim{"orders", Sequence{4}});
  EXPECT_THAT(take(*source), SizeIs(2));
  EXPECT_EQ(lost(), 0U);
}

}  // namespace
}  // namespace hapax::delivery
