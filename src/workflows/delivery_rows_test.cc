#include "workflows/delivery_rows.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"

namespace hapax::workflows {
namespace {

using testing::ElementsAre;

class DeliveryRows : public testing::Test {
 protected:
  std::shared_ptr<EndpointFigures> add(std::string tenant, std::string workflow,
                                       std::string endpoint) {
    auto made = std::make_shared<EndpointFigures>(std::move(tenant), std::move(workflow),
                                                  std::move(endpoint));
    made->began(10, 2);
    made->settled(delivery::Settlement::Kind::kDelivered, Duration{15}, "");
    all_.push_back(made);
    return made;
  }
  [[nodiscard]] std::vector<DeliveryRow> rows(const DeliveryRowsAsked& asked) const {
    const auto each = [this](const FiguresBoard::Visit& visit) {
      for (const auto& one : all_) visit(*one);
    };
    return delivery_rows(each, asked);
  }
  static std::vector<std::string> names(const std::vector<DeliveryRow>& rows) {
    std::vector<std::string> names;
    for (const DeliveryRow& row : rows) {
      names.push_back(
          base::format("{}/{}/{} {}", row.tenant, row.workflow, row.endpoint, row.counts.attempts));
    }
    return names;
  }

  std::vector<std::shared_ptr<EndpointFigures>> all_;
};

TEST_F(DeliveryRows, EndpointsBeyondTheLimitOfTheirWorkflowAreOneRow) {
  for (int i = 0; i < 4; ++i) add("", "fan", std::to_string(i));
  add("acme", "erp", "");
  const auto all = rows({.endpoints_max = 2});
  EXPECT_THAT(names(all),
              ElementsAre("/fan/0 10", "/fan/1 10", "acme/erp/ 10", "/fan/(others) 20"));
  EXPECT_EQ(all.back().counts.delivered, 2U);
  EXPECT_EQ(all.back().counts.delivery_seconds.counts.at(4), 2U);
}

TEST_F(DeliveryRows, ATenantSeesItsOwn) {
  add("", "fan", "a");
  add("acme", "erp", "");
  EXPECT_THAT(names(rows({.tenant = "acme"})), ElementsAre("acme/erp/ 10"));
}

// Whatever there is, there are at most so many rows, and nothing is left out of them.
TEST_F(DeliveryRows, AreBoundedAndAddUp) {
  for (int i = 0; i < 700; ++i) {
    for (int k = 0; k < 3; ++k) add("", base::format("w{}", i), std::to_string(k));
  }
  const auto all = rows({.endpoints_max = 2});
  EXPECT_EQ(all.size(), kDeliveryRowsMax);
  std::uint64_t attempts = 0;
  for (const DeliveryRow& row : all) attempts += row.counts.attempts;
  EXPECT_EQ(attempts, 21'000U);
  EXPECT_EQ(all.back().workflow, kOtherEndpoints);
}

TEST_F(DeliveryRows, RatesAreSharesOfTheAttempts) {
  const auto one = add("", "erp", "");
  one->settled(delivery::Settlement::Kind::kRetry, Duration{0}, "HTTP 500");
  const DeliveryCounts counts = rows({}).front().counts;
  EXPECT_DOUBLE_EQ(counts.retry_rate(), 0.1);
  EXPECT_DOUBLE_EQ(counts.duplicate_rate(), 0.2);
  EXPECT_DOUBLE_EQ(DeliveryCounts{}.retry_rate(), 0);
}

TEST_F(DeliveryRows, TellsWhichEndpointsAreDisabled) {
  const auto one = add("", "erp", "");
  one->disabled("HTTP 410");
  EXPECT_EQ(rows({}).front().counts.disabled, 1U);
  EXPECT_EQ(one->last_error(), "HTTP 410");
  one->enabled();
  EXPECT_EQ(rows({}).front().counts.disabled, 0U);
}

}  // namespace
}  // namespace hapax::workflows
