#include "serve/outbox_survey.h"

#include <gtest/gtest.h>

#include "host/clock.h"

namespace hapax::serve {
namespace {

// An outbox that is only asked for its report.
class ReportedOutbox final : public relay::Source {
 public:
  explicit ReportedOutbox(const Result<relay::OutboxReport>& says) : says_(says) {}
  Result<relay::OutboxReport> report() override { return says_; }

  Result<relay::Leases> lease(std::span<const relay::Lease>, Duration) override { return no(); }
  Result<relay::TakenBatches> next(std::span<const relay::LaneTurn>) override { return no(); }
  Status release(std::span<const relay::Lease>) override { return no(); }
  Result<bool> clean() override { return no(); }
  Result<std::vector<relay::TracedEvent>> trace(const std::string&) override { return no(); }
  Result<std::vector<relay::DeadLetter>> dead_letters(std::uint32_t) override { return no(); }
  Result<relay::Redriven> redrive(std::span<const std::string>) override { return no(); }
  bool wait(Duration) override { return false; }
  void nudge() override {}
  void wake() override {}

 private:
  static Error no() { return {Errc::kInvalidArgument, "only reports are wanted"}; }
  const Result<relay::OutboxReport>& says_;
};

class OutboxSurveys : public testing::Test {
 protected:
  OutboxSurveys() {
    delivery::Workflow shop{.id = delivery::WorkflowId::parse("shop").value()};
    shop.source = delivery::FromOutbox{};
    const auto url = delivery::WebUrl::parse("https://erp.example/in").value();
    shop.endpoints = {{.name = "", .target = delivery::HttpTarget{.url = url}}};
    delivery::Workflow stream = shop;
    stream.source = delivery::FromStream{"orders"};
    workflows_ = {stream, shop};
    relay::OutboxReport report;
    report.lanes = {{.waiting = 3, .oldest_waiting = Duration{9'000}, .retries = 1, .sent = 7},
                    {.waiting = 1, .oldest_waiting = Duration{5'000}}};
    report.dead_letters = 2;
    says_ = report;
  }
  OutboxSurvey survey() {
    const auto open = [this](const delivery::Workflow&) -> Result<std::unique_ptr<relay::Source>> {
      ++opened_;
      return std::unique_ptr<relay::Source>(std::make_unique<ReportedOutbox>(says_));
    };
    return {outboxes_of(workflows_, open), clock_};
  }

  host::HostClock clock_;
  std::vector<delivery::Workflow> workflows_;
  Result<relay::OutboxReport> says_ = relay::OutboxReport{};
  int opened_ = 0;
};

TEST_F(OutboxSurveys, SumTheLanesOfEachOutbox) {
  OutboxSurvey survey = this->survey();
  survey.look();
  const auto all = survey.latest();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].workflow, "shop");
  EXPECT_EQ(all[0].pending, 5U);
  EXPECT_EQ(all[0].published, 7U);
  EXPECT_EQ(all[0].dead_letters, 2U);
  EXPECT_EQ(*all[0].asked - *all[0].oldest, Duration{9'000});
  BacklogBoard::All backlogs;
  survey.add_to(backlogs, *all[0].asked + Duration{1'000});
  ASSERT_EQ(backlogs.size(), 1U);
  EXPECT_EQ(backlogs[0].behind, Duration{10'000});
  // A workflow whose rows go through a stream of its own has one backlog, of both.
  backlogs[0].records = 5;
  backlogs[0].behind = Duration{60'000};
  const std::uint64_t dead = backlogs[0].dead_letters;
  survey.add_to(backlogs, *all[0].asked + Duration{1'000});
  ASSERT_EQ(backlogs.size(), 1U);
  EXPECT_EQ(backlogs[0].records, 5 + all[0].pending);
  EXPECT_EQ(backlogs[0].behind, Duration{60'000});
  EXPECT_EQ(backlogs[0].dead_letters, 2 * dead);
  survey.look();
  EXPECT_EQ(opened_, 1);
}

TEST_F(OutboxSurveys, ADatabaseThatIsAwayIsShownAsItWas) {
  OutboxSurvey survey = this->survey();
  BacklogBoard::All backlogs;
  survey.add_to(backlogs, Time{});
  ASSERT_EQ(backlogs.size(), 1U);
  EXPECT_FALSE(backlogs[0].known);  // Nobody has said anything yet.
  BacklogBoard::All with_stream{{.workflow = "shop", .dead_letters = 1}};
  survey.add_to(with_stream, Time{});
  ASSERT_EQ(with_stream.size(), 1U);
  EXPECT_FALSE(with_stream[0].known);  // One half of it is not known.
  EXPECT_FALSE(survey.latest()[0].trouble.empty());
  survey.look();
  const Result<relay::OutboxReport> was = says_;
  says_ = Error{Errc::kUnavailable, "the database is away"};
  survey.look();
  const OutboxState state = survey.latest()[0];
  EXPECT_EQ(state.pending, 5U);
  EXPECT_NE(state.trouble.find("the database is away"), std::string::npos);
  // It is opened anew when it is back.
  says_ = was;
  survey.look();
  EXPECT_EQ(opened_, 2);
  EXPECT_TRUE(survey.latest()[0].trouble.empty());
}

}  // namespace
}  // namespace hapax::serve
