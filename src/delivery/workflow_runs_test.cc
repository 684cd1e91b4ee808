#include "delivery/workflow_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::delivery {
namespace {

using testing::HasSubstr;
using testing::Optional;

class WorkflowRuns : public testing::Test {
 protected:
  WorkflowRuns() {
    workflow_.source = FromStream{"orders"};
    workflow_.endpoints = {{.name = "erp", .target = HttpTarget{.url = url()}}};
  }
  static WebUrl url() { return WebUrl::parse("https://erp.example/in").value(); }
  [[nodiscard]] HttpTarget& target() {
    return std::get<HttpTarget>(workflow_.endpoints.front().target);
  }

  Workflow workflow_{.id = WorkflowId::parse("erp").value()};
};

TEST_F(WorkflowRuns, FromAStreamToAnEndpoint) {
  EXPECT_EQ(why_not_run(workflow_), std::nullopt);
  workflow_.delivery.guarantee = Guarantee::kAtLeastOnce;
  target().nature = NatureIdempotent{};
  EXPECT_EQ(why_not_run(workflow_), std::nullopt);
  target().auth = OAuth2Auth{url(), {}, SecretText::parse("${env:S}").value()};
  EXPECT_EQ(why_not_run(workflow_), std::nullopt);
}

TEST_F(WorkflowRuns, FromEventsThatArePostedToAnEndpoint) {
  workflow_.source = FromHttp{};
  EXPECT_EQ(why_not_run(workflow_), std::nullopt);
}

TEST_F(WorkflowRuns, WithSignedRecords) {
  workflow_.source_keys = {SecretText::parse("${env:NEW}").value()};
  EXPECT_EQ(why_not_run(workflow_), std::nullopt);
  workflow_.source_keys.push_back(SecretText::parse("${secret:old}").value());
  EXPECT_THAT(why_not_run(workflow_), Optional(HasSubstr("${secret:NAME} in source.signature")));
}

TEST_F(WorkflowRuns, UnderAKeyOfItsOwn) {
  workflow_.delivery.key.format = KeyFormat::of({KeyField::kPrimaryKey});
  EXPECT_EQ(why_not_run(workflow_), std::nullopt);
}

TEST_F(WorkflowRuns, UnderEveryGuarantee) {
  for (const Guarantee guarantee : {Guarantee::kAtMostOnce, Guarantee::kExactlyOnce}) {
    workflow_.delivery.guarantee = guarantee;
    target().nature = NatureNotSaid{};
    EXPECT_EQ(why_not_run(workflow_), std::nullopt);
    target().nature = NatureManual{};
    EXPECT_EQ(why_not_run(workflow_), std::nullopt);
    target().nature = NatureIdempotent{};
    EXPECT_EQ(why_not_run(workflow_), std::nullopt);
  }
  target().nature = NatureProbe{url()};
  EXPECT_EQ(why_not_run(workflow_), std::nullopt) << "exactly-once";
}

TEST_F(WorkflowRuns, WithATransformToSeveralEndpointsAndStreams) {
  workflow_.transform = TransformSettings{.jq = "."};
  EXPECT_EQ(why_not_run(workflow_), std::nullopt);
  workflow_.endpoints.push_back(workflow_.endpoints.front());
  workflow_.endpoints.push_back({.name = "copy", .target = StreamTarget{"other"}});
  EXPECT_EQ(why_not_run(workflow_), std::nullopt);
}

TEST_F(WorkflowRuns, ExactlyOnceToSeveralEndpointsOfOneNature) {
  workflow_.delivery.guarantee = Guarantee::kExactlyOnce;
  workflow_.endpoints.push_back(workflow_.endpoints.front());
  auto& second = std::get<HttpTarget>(workflow_.endpoints[1].target);
  target().nature = NatureIdempotent{};
  second.nature = NatureIdempotent{};
  EXPECT_EQ(why_not_run(workflow_), std::nullopt);
  second.nature = NatureManual{};
  EXPECT_THAT(why_not_run(workflow_), Optional(HasSubstr("endpoints of different nature")));
  target().nature = NatureNotSaid{};
  EXPECT_EQ(why_not_run(workflow_), std::nullopt);
  second.nature = NatureProbe{url()};
  EXPECT_THAT(why_not_run(workflow_), Optional(HasSubstr("nature probe and several endpoints")));
}

TEST_F(WorkflowRuns, FromAnOutboxThatWasMigrated) {
  FromOutbox outbox{SecretText::parse("${env:SHOP}").value(), OwnOutboxTables{}};
  workflow_.source = outbox;
  EXPECT_EQ(why_not_run(workflow_), std::nullopt);
  workflow_.source = FromOutbox{SecretText::parse("${secret:shop}").value(), OwnOutboxTables{}};
  EXPECT_THAT(why_not_run(workflow_), Optional(HasSubstr("with ${secret:NAME}")));
  outbox.tables = MappedOutboxTable{.table = "orders"};
  workflow_.source = outbox;
  EXPECT_EQ(why_not_run(workflow_), std::nullopt);
  EXPECT_TRUE(stores_rows(workflow_)) << "a table like that has no place for leases";
}

// One commit settles a record and stores what comes of it; a database is not in that commit.
TEST_F(WorkflowRuns, FromAnOutboxWhoseRowsAreStoredWhereADatabaseIsNotEnough) {
  EXPECT_FALSE(stores_rows(workflow_)) << "no outbox";
  workflow_.source = FromOutbox{SecretText::parse("${env:SHOP}").value(), OwnOutboxTables{}};
  const Workflow plain = workflow_;
  EXPECT_FALSE(stores_rows(workflow_));
  const auto expect_stored = [&] {
    EXPECT_TRUE(stores_rows(workflow_));
    EXPECT_EQ(why_not_run(workflow_), std::nullopt);
    workflow_ = plain;
  };
  for (const Guarantee guarantee : {Guarantee::kAtMostOnce, Guarantee::kExactlyOnce}) {
    workflow_.delivery.guarantee = guarantee;
    expect_stored();
  }
  workflow_.transform = TransformSettings{.jq = "."};
  expect_stored();
  workflow_.endpoints.push_back(workflow_.endpoints.front());
  expect_stored();
  workflow_.endpoints.front().target = StreamTarget{"archive"};
  expect_stored();
  for (const OnFailure& waits : {OnFailure{BlockKey{}}, OnFailure{BlockKeyFor{Duration{1'000}}}}) {
    workflow_.ordering = Ordering{.on_failure = waits};
    expect_stored();
  }
}

TEST_F(WorkflowRuns, NotWithoutASourceOrWhenItIsSwitchedOff) {
  workflow_.enabled = false;
  EXPECT_THAT(why_not_run(workflow_), Optional(HasSubstr("not enabled")));
  workflow_.source.reset();
  EXPECT_THAT(why_not_run(workflow_), Optional(HasSubstr("a draft")));
}

TEST_F(WorkflowRuns, WithStoredSecrets) {
  const SecretText stored = SecretText::parse("${secret:erp}").value();
  target().headers = {{"X-Key", stored}};
  target().signing = {{stored}};
  for (const EndpointAuth& auth :
       {EndpointAuth{BearerAuth{stored}}, EndpointAuth{BasicAuth{stored, stored}},
        EndpointAuth{OAuth2Auth{url(), stored, stored}}}) {
    target().auth = auth;
    EXPECT_EQ(why_not_run(workflow_), std::nullopt);
    EXPECT_TRUE(needs_stored_secret(target()));
  }
  target() = HttpTarget{.url = url()};
  EXPECT_FALSE(needs_stored_secret(target()));
}

// Nothing that a workflow asks for is left out silently.
TEST_F(WorkflowRuns, NotWithWhatNobodyDoes) {
  const Workflow good = workflow_;
  const auto expect = [&](std::string_view words) {
    EXPECT_THAT(why_not_run(workflow_), Optional(HasSubstr(std::string(words))));
    workflow_ = good;
  };
  target().nature = NatureManual{};
  expect("nature manual and guarantee idempotent-keys");
  target().nature = NatureProbe{url()};
  expect("nature probe and guarantee idempotent-keys");
  target().nature = NatureProbe{url()};
  workflow_.delivery.guarantee = Guarantee::kAtMostOnce;
  expect("nature probe and guarantee at-most-once");
  for (const OnFailure& waits : {OnFailure{BlockKey{}}, OnFailure{BlockKeyFor{Duration{1'000}}}}) {
    workflow_.ordering = Ordering{.on_failure = waits};
    EXPECT_EQ(why_not_run(workflow_), std::nullopt);
    workflow_ = good;
  }
}

}  // namespace
}  // namespace hapax::delivery
