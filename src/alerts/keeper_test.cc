// Keepers over a real store: several of them are processes that share it.
#include "alerts/keeper.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hapax/embedded.h>

#include "alerts/notice_text.h"
#include "base/format.h"
#include "host/temporary_folder_test.h"

namespace hapax::alerts {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kStream = "alerts.r.events";
const Subject kShop{.name = "shop"};

class Keepers : public testing::Test {
 protected:
  Keepers() {
    store_ = open_embedded(folder_.path(), {}).value();
    const std::vector<Op> ops{CreateStream{.stream = kStream}};
    EXPECT_TRUE(store_->commit({ops})->committed);
  }
  std::unique_ptr<Keeper> start(Store& store, std::string stream = std::string(kStream)) {
    return std::make_unique<Keeper>(
        rule_, Keeper::Ports{.store = store,
                             .stream = std::move(stream),
                             .process = base::format("p{}", ++started_),
                             .told =
                                 [this](const Notice& notice) {
                                   logged_.emplace_back(event_type_of(notice.kind));
                                 },
                             .left_out = [](std::uint64_t) {}});
  }
  std::unique_ptr<Keeper> start() { return start(*store_); }
  Status look(Keeper& keeper, double value) {
    now_ += Duration{5'000};
    const Observation seen[] = {{kShop, value}};
    return keeper.look(seen, now_);
  }
  std::vector<std::string> stored() {
    std::vector<std::string> types;
    const Records records = store_->read({.stream = kStream}).value();
    for (const Record& record : records.records) types.push_back(record.headers.at(0).second);
    return types;
  }

  host::TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  Rule rule_{.id = "r", .above = 2};
  Time now_ = time_from_ms(1'000'000);
  int started_ = 0;
  std::vector<std::string> logged_;
};

TEST_F(Keepers, WhatIsToldIsARecordOfTheStreamAndALineOfTheLog) {
  const auto keeper = start();
  ASSERT_TRUE(look(*keeper, 3));
  ASSERT_TRUE(look(*keeper, 4));
  ASSERT_TRUE(look(*keeper, 0));
  EXPECT_THAT(stored(), ElementsAre("alert.begins", "alert.ends"));
  EXPECT_EQ(logged_, stored());
  const Record first = store_->read({.stream = kStream}).value().records.at(0);
  EXPECT_EQ(first.group, "/shop/");
  EXPECT_THAT(first.payload, HasSubstr(R"("workflow":"shop","value":3)"));
}

TEST_F(Keepers, OfTwoProcessesOneTellsAndLogs) {
  const auto a = start();
  const auto b = start();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(look(*a, 3));
    ASSERT_TRUE(look(*b, 3));
  }
  EXPECT_THAT(stored(), ElementsAre("alert.begins"));
  EXPECT_THAT(logged_, ElementsAre("alert.begins"));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(look(*a, 0));
    ASSERT_TRUE(look(*b, 0));
  }
  EXPECT_THAT(stored(), ElementsAre("alert.begins", "alert.ends"));
}

TEST_F(Keepers, AProcessAndAStoreThatComeBackTellNothingAgain) {
  ASSERT_TRUE(look(*start(), 3));
  store_.reset();
  store_ = open_embedded(folder_.path(), {}).value();
  ASSERT_TRUE(look(*start(), 3));
  EXPECT_THAT(stored(), ElementsAre("alert.begins"));
}

// Passes everything on, and does something at certain calls.
class Meddling final : public Store {
 public:
  explicit Meddling(Store& store) : store_(store) {}
  std::function<void()> before_commit = [] {};
  bool lose_answer = false;
  bool refuses = false;

  Result<Answer> commit(const Commit& commit) override {
    std::exchange(before_commit, [] {})();
    if (refuses) return Error{Errc::kUnavailable, "the disk is full"};
    auto answer = store_.commit(commit);
    if (std::exchange(lose_answer, false)) return Error{Errc::kOutcomeUnknown, "cut off"};
    return answer;
  }
  void submit(const Commit& commit, Done done) override { done(this->commit(commit)); }
  Result<Records> read(const ReadRange& range) override { return store_.read(range); }
  Result<std::optional<IdStatus>> find_id(std::string_view stream, std::string_view id,
                                          std::optional<std::string_view> group) override {
    return store_.find_id(stream, id, group);
  }
  Result<std::optional<ClaimStatus>> find_claim(std::string_view scope,
                                                std::string_view key) override {
    return store_.find_claim(scope, key);
  }
  Result<std::optional<RegisterValue>> find_register(std::string_view name) override {
    return store_.find_register(name);
  }
  Result<RegisterPage> scan_registers(const RegisterScan& scan) override {
    return store_.scan_registers(scan);
  }
  Result<std::optional<Position>> find_position(std::string_view source) override {
    return store_.find_position(source);
  }
  Result<std::optional<ProducerStatus>> find_producer(std::string_view stream,
                                                      std::string_view producer) override {
    return store_.find_producer(stream, producer);
  }
  Result<StreamStats> describe(std::string_view stream) override { return store_.describe(stream); }
  Result<std::vector<std::string>> streams() override { return store_.streams(); }
  Result<Statistics> statistics() override { return store_.statistics(); }

 private:
  Store& store_;
};

// F1: another process tells between the look at the register and the commit.
TEST_F(Keepers, AProcessThatIsOvertakenTellsNothing) {
  Meddling store(*store_);
  const auto slow = start(store);
  const auto fast = start();
  store.before_commit = [&] { ASSERT_TRUE(look(*fast, 3)); };
  ASSERT_TRUE(look(*slow, 3));
  EXPECT_THAT(stored(), ElementsAre("alert.begins"));
  EXPECT_THAT(logged_, ElementsAre("alert.begins"));
}

// F3
TEST_F(Keepers, ALostAnswerTellsNothingTwice) {
  Meddling store(*store_);
  const auto keeper = start(store);
  store.lose_answer = true;
  EXPECT_FALSE(look(*keeper, 3).ok());
  ASSERT_TRUE(look(*keeper, 3));
  EXPECT_THAT(stored(), ElementsAre("alert.begins"));
  EXPECT_THAT(logged_, IsEmpty());
}

TEST_F(Keepers, WhatCouldNotBeStoredIsToldLater) {
  Meddling store(*store_);
  const auto keeper = start(store);
  store.refuses = true;
  EXPECT_FALSE(look(*keeper, 3).ok());
  EXPECT_THAT(logged_, IsEmpty());
  store.refuses = false;
  ASSERT_TRUE(look(*keeper, 3));
  EXPECT_THAT(stored(), ElementsAre("alert.begins"));
  EXPECT_THAT(logged_, ElementsAre("alert.begins"));
}

TEST_F(Keepers, WithoutAStreamOnlyTheLogIsTold) {
  const auto keeper = start(*store_, "");
  ASSERT_TRUE(look(*keeper, 3));
  ASSERT_TRUE(look(*start(*store_, ""), 3));
  EXPECT_THAT(logged_, ElementsAre("alert.begins"));
  EXPECT_THAT(stored(), IsEmpty());
}

TEST_F(Keepers, ARegisterOfSomebodyElseIsLeftAlone) {
  const std::vector<Op> ops{
      Set{.name = register_of(rule_), .value = "mine", .mode = SetMode::kAlways}};
  ASSERT_TRUE(store_->commit({ops}));
  const Status refused = look(*start(), 3);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("register 'alerts.r.firing'"));
  EXPECT_THAT(logged_, IsEmpty());
}

// Names as long as they may be.
TEST_F(Keepers, LongNamesFit) {
  const auto keeper = start();
  std::vector<Observation> many;
  for (std::size_t i = 0; i < kFiringsMax; ++i) {
    const std::string tail = base::format("{}", 100 + i);
    many.push_back(
        {{std::string(64, 't'), std::string(250, 'n') + tail, std::string(100, 'e')}, 3});
  }
  ASSERT_TRUE(keeper->look(many, now_));
  EXPECT_EQ(stored().size(), kFiringsMax);
}

// Names that are several times as long in JSON: as many alerts are told as the register holds.
TEST_F(Keepers, NamesThatDoNotFitHoldUpNoOtherAlert) {
  const auto keeper = start();
  std::vector<Observation> many{{kShop, 3}};
  for (std::size_t i = 0; i < kFiringsMax; ++i) {
    many.push_back({{.name = base::format("{}{}", std::string(240, '\x01'), 100 + i)}, 3});
  }
  ASSERT_TRUE(keeper->look(many, now_));
  EXPECT_GT(stored().size(), kFiringsMax / 4);
  many.resize(1);
  ASSERT_TRUE(keeper->look(many, now_ + Duration{1}));
  EXPECT_THAT(logged_, testing::Contains("alert.ends"));
}

}  // namespace
}  // namespace hapax::alerts
