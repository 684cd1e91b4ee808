#include "delivery/store_sink.h"

#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delivery/stream_stock_test.h"
#include "sim/clock.h"

namespace hapax::delivery {
namespace {

using StoredAs = SendResult::Outcome;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class StoreSinkTest : public testing::Test {
 protected:
  StoreSinkTest() {
    StreamSettings settings;
    settings.record_bytes_max = 10;
    const Op create = CreateStream{"w.rows", settings};
    ignore(store_.commit({.ops = {&create, 1}}), "it cannot fail");
  }

  void add(const std::string& id, const std::string& key = {}, const std::string& payload = "x") {
    rows_.push_back({.id = id, .key = key, .payload = payload});
  }
  // As if by the engine, of which the rows are gone before the store answers.
  std::vector<StoredAs> store(std::int64_t not_after_ms = 1'000) {
    std::vector<const Outgoing*> given;
    for (const Outgoing& row : rows_) given.push_back(&row);
    sink_.start(given, not_after_ms, [this](std::vector<SendResult> told) { told_ = told; });
    rows_.clear();
    while (!asked_.empty()) {
      const auto answer = std::move(asked_.front());
      asked_.pop_front();
      answer();
    }
    std::vector<StoredAs> all;
    for (const SendResult& each : told_) all.push_back(each.outcome);
    return all;
  }
  [[nodiscard]] std::vector<std::string> stored() {
    std::vector<std::string> ids;
    const Records found = store_.read({.stream = "w.rows", .max = 1'000}).value();
    for (const Record& each : found.records) ids.push_back(each.id);
    return ids;
  }

  sim::SimClock clock_;
  RuleStore store_{clock_};
  std::deque<std::function<void()>> asked_;
  std::optional<Error> fails_{};
  std::size_t commits_ = 0;
  std::string trouble_ = "none was told";
  std::deque<Outgoing> rows_;
  std::vector<SendResult> told_;
  StoreSink sink_{{.submit =
                       [this](const Commit& commit, Store::Done done) {
                         ++commits_;
                         asked_.push_back([this, commit, done = std::move(done)] {
                           done(fails_ ? Result<Answer>(*fails_) : store_.commit(commit));
                         });
                       },
                   .clock = clock_,
                   .told = [this](std::string_view reason) { trouble_ = reason; }},
                  "w.rows"};
};

TEST_F(StoreSinkTest, StoresAllInOneCommitAndInOrder) {
  add("a", "k");
  add("b");
  add("c", "k");
  EXPECT_THAT(store(),
              ElementsAre(StoredAs::kDelivered, StoredAs::kDelivered, StoredAs::kDelivered));
  EXPECT_THAT(stored(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(commits_, 1U);
  EXPECT_EQ(trouble_, "");
  EXPECT_EQ(store_.record("w.rows", Sequence{1}).group, "k");
}

// Z30: what is there before is a duplicate.
TEST_F(StoreSinkTest, ARowThatComesAgainIsStoredOnce) {
  add("a");
  ASSERT_THAT(store(), ElementsAre(StoredAs::kDelivered));
  add("a");
  add("b");
  EXPECT_THAT(store(), ElementsAre(StoredAs::kDelivered, StoredAs::kDelivered));
  EXPECT_THAT(stored(), ElementsAre("a", "b"));
}

// Z30: an answer that says nothing is no answer.
TEST_F(StoreSinkTest, NothingIsDeliveredWithoutAnAnswer) {
  for (const Errc code : {Errc::kUnavailable, Errc::kOutcomeUnknown, Errc::kShuttingDown}) {
    fails_ = Error{code, "it is away"};
    add("a", "k");
    EXPECT_THAT(store(), ElementsAre(StoredAs::kNotSent));
    EXPECT_GT(told_.at(0).after, Duration{0});
    EXPECT_THAT(trouble_, HasSubstr("it is away"));
  }
  fails_.reset();
  add("a", "k");
  EXPECT_THAT(store(), ElementsAre(StoredAs::kDelivered));
  EXPECT_EQ(trouble_, "");
}

TEST_F(StoreSinkTest, WhatTheStoreWillNeverTakeHoldsUpItsKeyOnly) {
  add("a", "k");
  add("large", "k", "more than ten bytes");
  add("c", "k");
  add("d", "m");
  add("too", "", "more than ten bytes");
  EXPECT_THAT(store(), ElementsAre(StoredAs::kDelivered, StoredAs::kRejected, StoredAs::kNotSent,
                                   StoredAs::kDelivered, StoredAs::kRejected));
  EXPECT_THAT(stored(), ElementsAre("a", "d"));
  EXPECT_TRUE(told_.at(1).hopeless);
  EXPECT_FALSE(told_.at(1).answered);
  EXPECT_EQ(told_.at(2).after, Duration{0}) << "it may be stored at once";
}

TEST_F(StoreSinkTest, AnotherRowUnderTheIdIsRejected) {
  add("a");
  ASSERT_THAT(store(), ElementsAre(StoredAs::kDelivered));
  add("a", "", "other");
  add("b");
  EXPECT_THAT(store(), ElementsAre(StoredAs::kRejected, StoredAs::kDelivered));
  EXPECT_THAT(told_.at(0).reason, HasSubstr("another record has its id"));
}

TEST_F(StoreSinkTest, AStreamThatIsGoneIsNobodysFault) {
  const Op remove = DeleteStream{"w.rows"};
  ASSERT_TRUE(store_.commit({.ops = {&remove, 1}}));
  add("a");
  EXPECT_THAT(store(), ElementsAre(StoredAs::kNotSent));
  EXPECT_FALSE(trouble_.empty());
}

// Z1
TEST_F(StoreSinkTest, NothingIsStoredWhenTheLeaseIsOverOrTheEndIsNear) {
  clock_.advance(5);
  add("a");
  EXPECT_THAT(store(clock_.steady_ms()), ElementsAre(StoredAs::kNotSent));
  sink_.wind_down();
  add("a");
  EXPECT_THAT(store(), ElementsAre(StoredAs::kNotSent));
  EXPECT_THAT(stored(), IsEmpty());
  EXPECT_EQ(commits_, 0U);
}

}  // namespace
}  // namespace hapax::delivery
