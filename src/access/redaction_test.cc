#include "access/redaction.h"

#include <future>

#include <gtest/gtest.h>

#include "access/entry.h"
#include "access/gatherer.h"
#include "access/no_store_test.h"
#include "base/place_failure.h"
#include "net/held_loop_test.h"

namespace hapax::access {
namespace {

constexpr std::string_view kInside = "open /data/journal-7.log of hapax@10.1.2.3:5432";

// Fails with the code, as a whole or in each verdict.
class FailingStore final : public NoStore {
 public:
  Errc code = Errc::kIo;
  bool refuses = false;

  Result<Answer> commit(const Commit& commit) override {
    if (!refuses) return failure();
    return Answer{.committed = false,
                  .verdicts = std::vector<Verdict>(commit.ops.size(), Refused{failure()})};
  }
  Result<StreamStats> describe(std::string_view) override { return failure(); }

 private:
  [[nodiscard]] Error failure() const { return {code, std::string(kInside)}; }
};

// One operation over the gatherer, as RESP asks.
class Listener final : public Asker, public std::enable_shared_from_this<Listener> {
 public:
  void told(std::uint64_t, const Op&, Verdict& verdict, Time) override {
    heard = std::get<Refused>(verdict).error;
  }
  void failed(std::uint64_t, const Error& error) override { heard = error; }
  void told_all() override {}
  [[nodiscard]] std::shared_ptr<Asker> keep() override { return shared_from_this(); }

  Error heard{Errc::kInvalidArgument, ""};
};

class RedactionTest : public testing::Test {
 protected:
  Error committed() {
    const auto request = std::make_shared<wire::Request>();
    request->ops.push_back(Set{.name = "r"});
    Error told{Errc::kInvalidArgument, ""};
    entry_.commit({loop_, "r-1"}, {{"", "anybody", Rights::all()}}, request,
                  [&](const Result<Answer>& answer) {
                    told =
                        answer ? std::get<Refused>(answer->verdicts.front()).error : answer.error();
                  });
    return told;
  }
  Error gathered() {
    const auto listener = std::make_shared<Listener>();
    const Caller caller{{"", std::string(kAnybody), Rights::all()}};
    EXPECT_TRUE(gatherer_.add(caller, TenantNames(caller), Set{.name = "r"}, *listener, 0));
    turns_.end_turn();
    return listener->heard;
  }

  FailingStore store_;
  std::vector<std::string> notes_;  // reference, then what was noted
  Redaction redaction_{[] { return std::string("made"); },
                       [this](const Error& error, std::string_view reference) {
                         notes_.push_back(std::string(reference) + " " + error.detail);
                       }};
  net::HeldLoop loop_;
  net::TurnByTurn turns_;
  Entry entry_{store_, 1, nullptr, &redaction_};
  Gatherer gatherer_{entry_, turns_};
};

// A12
TEST_F(RedactionTest, WhatFailedBehindTheStoreIsForTheLog) {
  for (const Errc code : base::kPlaceFailures) {
    store_.code = code;
    for (const bool refuses : {false, true}) {
      store_.refuses = refuses;
      for (const Error& told : {committed(), gathered()}) {
        EXPECT_EQ(told.code, code);
        EXPECT_EQ(told.detail.find("10.1.2.3"), std::string::npos) << told.detail;
        EXPECT_EQ(told.detail.find("/data"), std::string::npos) << told.detail;
      }
      EXPECT_EQ(notes_, (std::vector<std::string>{"r-1 " + std::string(kInside),
                                                  "made " + std::string(kInside)}));
      notes_.clear();
    }
  }
}

// A12
TEST_F(RedactionTest, ReadsAreToldTheSameWay) {
  store_.code = Errc::kCorruption;
  std::promise<Error> promise;
  entry_.ask(
      From{loop_, "r-2"}, Caller{}, [](Store& store) { return store.describe("s"); },
      [&](const Result<StreamStats>& stats) { promise.set_value(stats.error()); });
  const Error told = promise.get_future().get();
  EXPECT_NE(told.detail.find("request r-2"), std::string::npos) << told.detail;
  EXPECT_EQ(told.detail.find("/data"), std::string::npos) << told.detail;
  EXPECT_EQ(notes_, std::vector<std::string>{"r-2 " + std::string(kInside)});
}

TEST_F(RedactionTest, WhatTheCallerDidWrongIsToldAsItIs) {
  for (const Errc code : {Errc::kInvalidArgument, Errc::kNotFound, Errc::kConflict,
                          Errc::kQuotaExceeded, Errc::kMemoryBudget, Errc::kShuttingDown}) {
    store_.code = code;
    EXPECT_EQ(committed(), (Error{code, std::string(kInside)}));
  }
  EXPECT_TRUE(notes_.empty());
}

TEST(PlaceFailure, ALostRightIsNoMistakeOfTheCaller) {
  EXPECT_EQ(base::place_failure({Errc::kForbidden, "x"}), (Error{Errc::kUnavailable, "x"}));
  EXPECT_EQ(base::place_failure({Errc::kInvalidArgument, "x"}), (Error{Errc::kUnavailable, "x"}));
  EXPECT_EQ(base::place_failure({Errc::kNoSpace, "x"}), (Error{Errc::kNoSpace, "x"}));
}

}  // namespace
}  // namespace hapax::access
