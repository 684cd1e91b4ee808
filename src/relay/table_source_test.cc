#include "relay/table_source.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"
#include "sim/clock.h"

namespace hapax::relay {
namespace {

using RowEnd = SendOutcome::Kind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Rows that are there, and what was said of them.
class ListedRows final : public TableRows {
 public:
  std::vector<std::string> ids{"a", "b", "c"};
  std::vector<std::string> marked{};
  std::vector<std::string> errors{};
  bool fails = false;
  bool keeps_marks = true;

  Result<std::vector<Outgoing>> read(std::uint32_t most,
                                     std::span<const std::string> without) override {
    std::vector<Outgoing> rows;
    for (const std::string& id : ids) {
      const bool wanted = std::find(without.begin(), without.end(), id) == without.end() &&
                          std::find(marked.begin(), marked.end(), id) == marked.end();
      if (wanted && rows.size() < most) rows.push_back({.id = id});
    }
    return rows;
  }
  Status mark(std::span<const RowMarking> rows) override {
    if (fails) return Error{Errc::kUnavailable, "it is away"};
    for (const RowMarking& row : rows) {
      if (row.taken_over && !keeps_marks) continue;
      row.taken_over ? marked.push_back(row.id) : errors.push_back(row.id + ": " + row.error);
    }
    return Ok{};
  }
  Result<LaneReport> report() override { return LaneReport{.waiting = ids.size()}; }
  bool wait(Duration) override { return true; }
  void stay_up() override {}
  void nudge() override {}
  void wake() override {}
};

class TableSourceTest : public testing::Test {
 protected:
  std::vector<std::string> take(std::uint32_t most, std::vector<SendOutcome> outcomes = {}) {
    const LaneTurn turn{.lease = lease_, .outcomes = std::move(outcomes), .take = most};
    auto told = source_.next({&turn, 1});
    if (!told) return {told.error().text()};
    std::vector<std::string> ids;
    for (const OutgoingBatch& batch : told->batches) {
      for (const Outgoing& row : batch.records) ids.push_back(row.id);
    }
    return ids;
  }
  void lease() { lease_ = source_.lease({}, Duration{1'000}).value().held.at(0); }

  sim::SimClock clock_;
  std::unique_ptr<ListedRows> owned_ = std::make_unique<ListedRows>();
  ListedRows& rows_ = *owned_;
  TableSource source_{std::move(owned_), clock_};
  Lease lease_ = source_.lease({}, Duration{1'000}).value().held.at(0);
};

TEST_F(TableSourceTest, MarksWhatWasTakenOverAndNothingElse) {
  EXPECT_THAT(take(2), ElementsAre("a", "b"));
  EXPECT_THAT(rows_.marked, IsEmpty());
  EXPECT_THAT(take(2, {{RowEnd::kAccepted}, {RowEnd::kNotSent}}), ElementsAre("b", "c"));
  EXPECT_THAT(rows_.marked, ElementsAre("a"));
}

// Y20
TEST_F(TableSourceTest, FindsARowThatComesBeforeThoseThatWereTaken) {
  EXPECT_THAT(take(5), ElementsAre("a", "b", "c"));
  rows_.ids.insert(rows_.ids.begin(), "0");
  EXPECT_THAT(take(5, {{RowEnd::kAccepted}, {RowEnd::kAccepted}, {RowEnd::kAccepted}}),
              ElementsAre("0"));
}

TEST_F(TableSourceTest, RestsWithAllRowsWhileOneWaits) {
  EXPECT_THAT(take(5), ElementsAre("a", "b", "c"));
  EXPECT_THAT(take(5, {{RowEnd::kAccepted}, {RowEnd::kHeld, Duration{100}}, {RowEnd::kAccepted}}),
              IsEmpty());
  clock_.advance(100);
  EXPECT_THAT(take(5), ElementsAre("b"));
}

TEST_F(TableSourceTest, PassesOverWhatCannotBeTakenOverAndTriesItAgainLater) {
  EXPECT_THAT(take(5), ElementsAre("a", "b", "c"));
  EXPECT_THAT(take(5, {{RowEnd::kDead, {}, "too large"}, {RowEnd::kAccepted}, {RowEnd::kAccepted}}),
              IsEmpty());
  EXPECT_THAT(rows_.errors, ElementsAre("a: too large"));
  EXPECT_EQ(source_.report()->dead_letters, 1U);
  clock_.advance(TableSource::kPassedOver.count());
  EXPECT_THAT(take(5), ElementsAre("a"));
}

TEST_F(TableSourceTest, StopsWhenTooManyRowsCannotBeTakenOver) {
  rows_.ids.clear();
  for (std::size_t i = 0; i <= TableSource::kPassedOverMax; ++i) {
    rows_.ids.push_back(base::format("{}", i));
  }
  const auto count = static_cast<std::uint32_t>(rows_.ids.size());
  ASSERT_EQ(take(count).size(), count);
  const std::vector<SendOutcome> dead(count, {RowEnd::kDead, {}, "too large"});
  EXPECT_THAT(take(5, dead), ElementsAre(HasSubstr("the last one is row '1000': too large")));
}

TEST_F(TableSourceTest, AnErrorMarksNothingAndTheRowsComeAgain) {
  EXPECT_THAT(take(1), ElementsAre("a"));
  rows_.fails = true;
  EXPECT_THAT(take(1, {{RowEnd::kAccepted}}), ElementsAre(HasSubstr("it is away")));
  rows_.fails = false;
  lease();
  EXPECT_THAT(take(1), ElementsAre("a"));
}

TEST_F(TableSourceTest, AMarkThatDoesNotStayIsTold) {
  rows_.keeps_marks = false;
  EXPECT_THAT(take(1), ElementsAre("a"));
  EXPECT_THAT(take(1, {{RowEnd::kAccepted}}), ElementsAre(HasSubstr("'a' was marked, and has no")));
  rows_.keeps_marks = true;
  lease();
  EXPECT_THAT(take(1), ElementsAre("a")) << "somebody may want it sent again";
  EXPECT_THAT(take(1, {{RowEnd::kAccepted}}), ElementsAre("b"));
}

TEST_F(TableSourceTest, ALaneThatWasTakenAnewIsAnotherOne) {
  EXPECT_THAT(take(1), ElementsAre("a"));
  const Lease old = lease_;
  const auto kept = source_.lease({&old, 1}, Duration{1'000}).value().held;
  EXPECT_THAT(kept, ElementsAre(old));
  lease();
  const LaneTurn turn{.lease = old, .outcomes = {{RowEnd::kAccepted}}, .take = 1};
  EXPECT_THAT(source_.next({&turn, 1})->lost, ElementsAre(0U));
  EXPECT_THAT(rows_.marked, IsEmpty());
}

}  // namespace
}  // namespace hapax::relay
