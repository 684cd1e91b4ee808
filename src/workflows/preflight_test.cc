#include "workflows/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::workflows {
namespace {

using delivery::SecretText;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

SecretText text_of(std::string_view written) { return SecretText::parse(written).value(); }

TEST(Preflight, NamesWhatIsNotThere) {
  delivery::Workflow workflow{.id = delivery::WorkflowId::parse("erp").value()};
  workflow.source = delivery::FromOutbox{text_of("${env:HAPAX_TEST_NO_SUCH}"), {}};
  workflow.source_keys = {text_of("${file:/nonexistent/key}"), text_of("whsec_clear")};
  delivery::HttpTarget target{.url = delivery::WebUrl::parse("https://erp.example/").value()};
  target.headers = {{"X-Path", text_of("${env:PATH}")}};
  target.auth = delivery::BearerAuth{text_of("Bearer ${env:HAPAX_TEST_NO_SUCH}")};
  workflow.endpoints = {{.name = "", .target = target}};
  EXPECT_THAT(missing_here(std::vector{workflow}),
              ElementsAre(AllOf(HasSubstr("workflow 'erp': ${env:HAPAX_TEST_NO_SUCH} is not there"),
                                HasSubstr("does not start")),
                          HasSubstr("${file:/nonexistent/key} cannot be read here")))
      << "each once";
  workflow.enabled = false;
  EXPECT_THAT(missing_here(std::vector{workflow}), IsEmpty()) << "it does not run";
}

// They are in the store of a server, which a check does not open.
TEST(Preflight, DoesNotLookForStoredSecrets) {
  delivery::Workflow workflow{.id = delivery::WorkflowId::parse("erp").value()};
  workflow.source = delivery::FromStream{"orders"};
  delivery::HttpTarget target{.url = delivery::WebUrl::parse("https://erp.example/").value()};
  target.auth = delivery::BearerAuth{text_of("${secret:ERP}")};
  workflow.endpoints = {{.name = "", .target = target}};
  EXPECT_THAT(missing_here(std::vector{workflow}), IsEmpty());
}

}  // namespace
}  // namespace hapax::workflows
