#include "serve/declared_workflows.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hapax/embedded.h>

#include "host/temporary_folder_test.h"

namespace hapax::serve {
namespace {

using delivery::FromHttp;
using delivery::FromStream;
using delivery::Workflow;
using delivery::WorkflowId;
using testing::HasSubstr;

Workflow workflow(std::string_view id, delivery::WorkflowSource source, std::string tenant = "") {
  Workflow made{.id = WorkflowId::parse(id).value(), .tenant = std::move(tenant)};
  made.source = std::move(source);
  const auto url = delivery::WebUrl::parse("https://erp.example/in").value();
  made.endpoints = {{.name = "", .target = delivery::HttpTarget{.url = url}}};
  return made;
}

TEST(DeclaredWorkflows, TheStreamOfEventsBeginsWithTheNameOfTheWorkflow) {
  const WorkflowBoard board({workflow("erp", FromHttp{})});
  const DeclaredWorkflows declared(board);
  EXPECT_EQ(declared.stream_of_events("", "erp").value(), "erp.events");
}

// A6: a workflow of another tenant is not there.
TEST(DeclaredWorkflows, EachTenantHasItsOwn) {
  const WorkflowBoard board({workflow("erp", FromHttp{}, "acme")});
  const DeclaredWorkflows declared(board);
  EXPECT_TRUE(declared.stream_of_events("acme", "erp").ok());
  for (const std::string_view other : {"", "beta"}) {
    const auto refused = declared.stream_of_events(other, "erp");
    ASSERT_FALSE(refused.ok()) << other;
    EXPECT_EQ(refused.error().code, Errc::kNotFound);
  }
}

TEST(DeclaredWorkflows, AWorkflowThatTakesNoEventsSaysWhy) {
  Workflow off = workflow("off", FromHttp{});
  off.enabled = false;
  const WorkflowBoard board({off, workflow("fed", FromStream{"orders"})});
  const DeclaredWorkflows declared(board);
  const auto refusal = [&](std::string_view id) {
    const auto refused = declared.stream_of_events("", id);
    EXPECT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Errc::kPreconditionFailed);
    return refused.error().detail;
  };
  EXPECT_EQ(refusal("off"), "workflow 'off' takes no events: it is not enabled");
  EXPECT_THAT(refusal("fed"), HasSubstr("its source is stream 'orders'; append records there"));
}

// What counts of an endpoint goes with its workflow, also while somebody asks.
TEST(DeclaredWorkflows, FiguresAreReadWhileTheyAreThere) {
  const WorkflowBoard board({workflow("erp", FromStream{"orders"})});
  const DeclaredWorkflows declared(board, [](const auto& visit) {
    std::optional<workflows::EndpointFigures> figures;
    for (const std::string name : {"first", "second"}) {
      figures.emplace("", "erp", name);
      visit(*figures);
    }
  });
  const host::TemporaryFolder folder;
  EmbeddedOptions options;
  options.log = [](const std::string&) {};
  const auto store = open_embedded(folder.path(), options).value();
  const std::string told = declared.list("", *store).value();
  EXPECT_THAT(told, HasSubstr(R"("name":"first")"));
  EXPECT_THAT(told, HasSubstr(R"("name":"second")"));
}

}  // namespace
}  // namespace hapax::serve
