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
}

TEST_F(WorkflowRuns, FromAnOutboxThatWasMigrated) {
  FromOutbox outbox{SecretText::parse("${env:SHOP}").value(), OwnOutboxTables{}};
  workflow_.source = outbox;
  EXPECT_EQ(why_not_run(workflow_), std::nullopt);
  workflow_.delivery.guarantee = Guarantee::kExactlyOnce;
  EXPECT_THAT(why_not_run(workflow_), Optional(HasSubstr("from an outbox with guarantee exactly")));
  workflow_.delivery.guarantee = Guarantee::kAtLeastOnce;
  workflow_.source = FromOutbox{SecretText::parse("${secret:shop}").value(), OwnOutboxTables{}};
  EXPECT_THAT(why_not_run(workflow_), Optional(HasSubstr("with ${secret:NAME}")));
  outbox.tables = MappedOutboxTable{.table = "orders"};
  workflow_.source = outbox;
  EXPECT_THAT(why_not_run(workflow_), Optional(HasSubstr("table that hapax migrate did not make")));
}

TEST_F(WorkflowRuns, NotWithoutASourceOrWhenItIsSwitchedOff) {
  workflow_.enabled = false;
  EXPECT_THAT(why_not_run(workflow_), Optional(HasSubstr("not enabled")));
  workflow_.source.reset();
  EXPECT_THAT(why_not_run(workflow_), Optional(HasSubstr("a draft")));
}

// Nothing that a workflow asks for is left out silently.
TEST_F(WorkflowRuns, NotWithWhatNobodyDoes) {
  const Workflow good = workflow_;
  const auto expect = [&](std::string_view words) {
    EXPECT_THAT(why_not_run(workflow_), Optional(HasSubstr(std::string(words))));
    workflow_ = good;
  };
  workflow_.source = FromHttp{};
  expect("source is HTTP");
  workflow_.transform = TransformSettings{.jq = "."};
  expect("with a transform");
  workflow_.endpoints.push_back(workflow_.endpoints.front());
  expect("several endpoints");
  workflow_.endpoints.front().target = StreamTarget{"other"};
  expect("into a stream");
  target().nature = NatureManual{};
  expect("nature manual");
  target().nature = NatureProbe{url()};
  expect("nature probe");
  target().tls.server_name = "other";
  expect("tls.serverName");
  target().auth = BearerAuth{SecretText::parse("${secret:erp}").value()};
  expect("${secret:NAME}");
  target().headers = {{"X-Key", SecretText::parse("${secret:erp}").value()}};
  expect("${secret:NAME}");
  workflow_.delivery.guarantee = Guarantee::kAtMostOnce;
  expect("guarantee at-most-once");
  workflow_.delivery.guarantee = Guarantee::kExactlyOnce;
  expect("guarantee exactly-once");
  workflow_.delivery.key.format = KeyFormat::of({KeyField::kPrimaryKey});
  expect("idempotencyKey.format");
  workflow_.ordering = Ordering{.on_failure = BlockKey{}};
  expect("onFailure block");
}

}  // namespace
}  // namespace hapax::delivery
