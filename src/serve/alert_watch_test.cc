#include "serve/alert_watch.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"

namespace hapax::serve {
namespace {

using alerts::Condition;
using testing::ElementsAre;
using testing::IsEmpty;

class RuleSights : public testing::Test {
 protected:
  RuleSights() { survey_.store.log_time = time_from_ms(1'000'000); }

  std::vector<std::string> seen(RuleSight& sight) {
    const workflows::EachEndpoint each = [this](const workflows::FiguresBoard::Visit& visit) {
      for (const auto& one : endpoints_) visit(*one);
    };
    std::vector<std::string> all;
    for (const auto& [subject, value, known] : sight.see({survey_, backlogs_, meter_, each})) {
      all.push_back(
          base::format("{}/{}/{} {:g}", subject.tenant, subject.name, subject.part, value));
      EXPECT_TRUE(known);
    }
    return all;
  }
  std::vector<std::string> seen(const alerts::Rule& rule) {
    RuleSight sight(rule);
    return seen(sight);
  }
  workflows::EndpointFigures& endpoint(std::string workflow, std::string name) {
    endpoints_.push_back(
        std::make_unique<workflows::EndpointFigures>("", std::move(workflow), std::move(name)));
    return *endpoints_.back();
  }

  Survey survey_;
  BacklogBoard::All backlogs_;
  metrics::Meter meter_;
  std::vector<std::unique_ptr<workflows::EndpointFigures>> endpoints_;
};

TEST_F(RuleSights, BacklogsAreWhatDeadLettersAndLagSee) {
  backlogs_ = {{.workflow = "erp", .behind = Duration{1'500}, .dead_letters = 2},
               {.tenant = "acme", .workflow = "crm"}};
  EXPECT_THAT(seen({.id = "r", .when = Condition::kDeadLetters}),
              ElementsAre("/erp/ 2", "acme/crm/ 0"));
  EXPECT_THAT(seen({.id = "r", .when = Condition::kLag, .names = {"e*"}}),
              ElementsAre("/erp/ 1.5"));
}

TEST_F(RuleSights, ABacklogOfWhichNobodyHasSaidAnythingIsNotKnown) {
  backlogs_ = {{.workflow = "erp", .known = false}};
  const alerts::Rule rule{.id = "r", .when = Condition::kDeadLetters};
  RuleSight sight(rule);
  const auto all = sight.see({survey_, backlogs_, meter_, {}});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_FALSE(all[0].known);
}

TEST_F(RuleSights, RatesAreOfAllEndpointsOfAWorkflow) {
  endpoint("fan", "a").began(30, 15);
  endpoint("fan", "b").began(30, 0);
  endpoint("alerts.r", "").began(100, 100);
  EXPECT_THAT(seen({.id = "r", .when = Condition::kRepeatRate}), ElementsAre("/fan/ 0.25"));
  EXPECT_THAT(seen({.id = "r", .when = Condition::kRetryRate}), ElementsAre("/fan/ 0"));
}

TEST_F(RuleSights, AnEndpointIsSeenWhileItIsDisabled) {
  const alerts::Rule rule{.id = "r", .when = Condition::kEndpointDisabled};
  auto& one = endpoint("fan", "a");
  endpoint("alerts.r", "").disabled("HTTP 410");
  EXPECT_THAT(seen(rule), IsEmpty());
  one.disabled("HTTP 410");
  EXPECT_THAT(seen(rule), ElementsAre("/fan/a 1"));
}

TEST_F(RuleSights, LimitsThatATenantHasAreWhatQuotaSees) {
  survey_.tenants = {{.tenant = "acme", .storage_bytes = 90, .total_bytes = 50}};
  survey_.tenants[0].share.storage_max = 100;
  EXPECT_THAT(seen({.id = "r", .when = Condition::kQuota}), ElementsAre("acme/storage/ 0.9"));
}

}  // namespace
}  // namespace hapax::serve
