#include "delivery/workflow_explain.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/words.h"
#include "delivery/workflow_test.h"

namespace hapax::delivery {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<std::optional<WorkflowSource>> kSources{
    std::nullopt, FromOutbox{SecretText::parse("${env:D}").value(), OwnOutboxTables{}},
    FromOutbox{SecretText::parse("${env:D}").value(), MappedOutboxTable{"t", {"i", "p", "d"}}},
    FromStream{"orders"}, FromHttp{}};

std::vector<EndpointSettings> targets() {
  const WebUrl status = WebUrl::parse("https://erp.example/status/{key}").value();
  const std::string_view url = "https://erp.example/orders";
  return {{"", http_target(url, NatureNotSaid{})},
          {"", http_target(url, NatureIdempotent{})},
          {"", http_target(url, NatureProbe{status})},
          {"", http_target(url, NatureManual{})},
          {"", StreamTarget{"out"}}};
}

std::vector<Workflow> every_workflow() {
  std::vector<Workflow> all;
  for (const auto guarantee : {Guarantee::kAtMostOnce, Guarantee::kAtLeastOnce,
                               Guarantee::kIdempotentKeys, Guarantee::kExactlyOnce}) {
    for (const auto& source : kSources) {
      for (const EndpointSettings& endpoint : targets()) {
        Workflow workflow = sound_workflow();
        workflow.delivery.guarantee = guarantee;
        workflow.source = source;
        workflow.endpoints = {endpoint};
        workflow.delivery.client_guidance = true;
        all.push_back(workflow);
      }
    }
  }
  return all;
}

std::string whole(const WorkflowExplanation& told) {
  std::string text = told.route + told.source + told.retries + told.order + told.key + told.latency;
  for (const auto& one : told.endpoints) {
    text += one.guarantee + one.crash_windows + one.client + one.pauses;
  }
  text += told.guidance;
  return text;
}

TEST(ExplainWorkflow, EveryCombinationIsExplainedInFull) {
  for (const Workflow& workflow : every_workflow()) {
    const WorkflowExplanation told = explain_workflow(workflow);
    ASSERT_EQ(told.endpoints.size(), 1U);
    for (const std::string& text :
         {told.source, told.endpoints[0].guarantee, told.endpoints[0].crash_windows,
          told.endpoints[0].client, told.guidance, told.retries, told.order, told.key,
          told.latency}) {
      EXPECT_GT(text.size(), 20U) << told.route;
      EXPECT_EQ(text.back(), '.') << text;
      EXPECT_THAT(text, Not(HasSubstr("  ")));
    }
  }
}

TEST(ExplainWorkflow, ClientsAreToldHowToBehave) {
  Workflow workflow = sound_workflow();
  EXPECT_THAT(whole(explain_workflow(workflow)), Not(HasSubstr("signed")));
  EXPECT_THAT(whole(explain_workflow(workflow)), HasSubstr("An answer 410 ends deliveries"));
  HttpTarget& target = std::get<HttpTarget>(workflow.endpoints[0].target);
  target.signing = {{secret("${env:K}")}};
  target.on_status = {{410, 410, StatusWord::kReject}};
  EXPECT_THAT(whole(explain_workflow(workflow)), HasSubstr("verifies webhook-signature"));
  EXPECT_THAT(whole(explain_workflow(workflow)), Not(HasSubstr("410")));
}

TEST(ExplainWorkflow, AnEndpointThatFailsIsLeftAloneAsDeclared) {
  Workflow workflow = sound_workflow();
  const auto told = [&] { return explain_workflow(workflow).endpoints[0].pauses; };
  EXPECT_THAT(told(), HasSubstr("of 4 keys fail in a row, or of 2 without an answer"));
  EXPECT_THAT(told(), HasSubstr("for 250 ms, and each time for twice as long, up to 2s, or 30s"));
  EXPECT_THAT(told(), HasSubstr("Then one request at a time"));
  workflow.endpoints[0].breaker = {.failures = 7, .pause = Duration{3'000}, .probes = 2};
  EXPECT_THAT(told(), HasSubstr("of 7 keys fail in a row, or of 7"));
  EXPECT_THAT(told(), HasSubstr("for 3s,"));
  EXPECT_THAT(told(), HasSubstr("Then up to 2 requests at a time"));
}

TEST(ExplainWorkflow, SaysThatRecordsAreVerified) {
  Workflow workflow = sound_workflow();
  EXPECT_THAT(explain_workflow(workflow).source, Not(HasSubstr("signed")));
  workflow.source_keys = {secret("${env:K}")};
  EXPECT_THAT(explain_workflow(workflow).source, HasSubstr("signature is missing or does not"));
}

TEST(ExplainWorkflow, SaysWhatIsNotRun) {
  Workflow workflow = sound_workflow();
  EXPECT_EQ(explain_workflow(workflow).not_run, "");
  workflow.enabled = false;
  EXPECT_THAT(explain_workflow(workflow).not_run, HasSubstr("not enabled"));
}

TEST(ExplainWorkflow, ClientsGetATextIfTheWorkflowSaysSo) {
  Workflow workflow = sound_workflow("shop");
  EXPECT_EQ(explain_workflow(workflow).guidance, "");
  DeliveryTerms& terms = workflow.delivery;
  terms.client_guidance = true;
  terms.documentation = {.sdk_available = true, .example_code = "https://docs.example/dedup"};
  const auto told = [&] { return explain_workflow(workflow).guidance; };
  EXPECT_THAT(told(), HasSubstr("the workflow 'shop'. It delivers under idempotent keys"));
  EXPECT_THAT(told(), HasSubstr("and as idempotencyKey in its body"));
  EXPECT_THAT(told(), HasSubstr("Store the key in the transaction"));
  EXPECT_THAT(told(), HasSubstr("hapax/webhook.h"));
  EXPECT_THAT(told(), HasSubstr("Examples: https://docs.example/dedup"));
  terms.key.in_payload = false;
  EXPECT_THAT(told(), Not(HasSubstr("in its body")));
  terms.guarantee = Guarantee::kExactlyOnce;
  EXPECT_THAT(told(), HasSubstr("Over HTTP an answer can still be lost"));
  EXPECT_THAT(told(), HasSubstr("comes again under the same key"));
  terms.guarantee = Guarantee::kAtLeastOnce;
  EXPECT_THAT(told(), HasSubstr("an upsert instead of an insert"));
  terms.guarantee = Guarantee::kAtMostOnce;
  EXPECT_THAT(told(), HasSubstr("a record can be missing"));
  EXPECT_THAT(told(), Not(HasSubstr("Remember")));
}

TEST(ExplainWorkflow, AKeyOfItsOwnSaysWhichRecordsAreOneEffect) {
  Workflow workflow = sound_workflow();
  EXPECT_THAT(explain_workflow(workflow).key, HasSubstr("of where it comes from"));
  workflow.delivery.key.form = KeyForm::kShort;
  EXPECT_THAT(explain_workflow(workflow).key, HasSubstr("first 72 bits"));
  workflow.delivery.key.format = KeyFormat::parse("{payload:/id}").value();
  const auto told = [&] { return explain_workflow(workflow).key; };
  EXPECT_THAT(told(), HasSubstr("{payload:/id}"));
  EXPECT_THAT(told(), HasSubstr("it is a dead letter"));
  EXPECT_THAT(told(), HasSubstr("both are sent, under one key"));
  workflow.delivery.guarantee = Guarantee::kExactlyOnce;
  EXPECT_THAT(told(), HasSubstr("acknowledged without being sent"));
  workflow.delivery.guarantee = Guarantee::kAtLeastOnce;
  EXPECT_THAT(told(), HasSubstr("both are sent, under one key"));
  workflow.transform = TransformSettings{.jq = "."};
  EXPECT_THAT(told(), HasSubstr("the second one is not sent"));
}

// A3: the sentence of the document is false over HTTP.
TEST(ExplainWorkflow, NobodyIsToldThatDeduplicationIsNotNeeded) {
  for (const Workflow& workflow : every_workflow()) {
    const WorkflowExplanation told = explain_workflow(workflow);
    const std::string text = base::lower(whole(told));
    EXPECT_THAT(text, Not(HasSubstr("no client-side")));
    EXPECT_THAT(text, Not(HasSubstr("not needed")));
    EXPECT_THAT(text, Not(HasSubstr("no duplicates")));
    const bool http = workflow.endpoints[0].http() != nullptr;
    if (!http || workflow.delivery.guarantee == Guarantee::kAtMostOnce) continue;
    EXPECT_THAT(told.endpoints[0].client, HasSubstr("The client must")) << told.route;
    EXPECT_THAT(told.endpoints[0].client, HasSubstr("at least 1h (giveUpAfter)"));
  }
}

TEST(ExplainWorkflow, WhatHappensToTheUnknownFollowsFromTheNature) {
  Workflow workflow = sound_workflow();
  workflow.delivery.guarantee = Guarantee::kExactlyOnce;
  std::set<std::string> windows;
  for (const EndpointSettings& endpoint : targets()) {
    workflow.endpoints = {endpoint};
    windows.insert(explain_workflow(workflow).endpoints[0].crash_windows);
  }
  EXPECT_EQ(windows.size(), 5U);
  workflow.endpoints = {targets()[2]};
  EXPECT_THAT(explain_workflow(workflow).endpoints[0].crash_windows,
              HasSubstr("https://erp.example/status/{key}"));
}

TEST(ExplainWorkflow, ADraftIsExplainedAsIfItHadAnEndpoint) {
  const Workflow draft{WorkflowId::parse("a").value()};
  const WorkflowExplanation told = explain_workflow(draft);
  ASSERT_EQ(told.endpoints.size(), 1U);
  EXPECT_THAT(told.source, HasSubstr("draft"));
  EXPECT_THAT(told.endpoints[0].client, HasSubstr("The client must"));
}

TEST(ExplainWorkflow, OrderIsToldAfterAFailure) {
  Workflow workflow = sound_workflow();
  EXPECT_THAT(explain_workflow(workflow).order, HasSubstr("go on: a replay comes after"));
  workflow.ordering = Ordering{OrderingKey::kRecord, BlockKey{}};
  EXPECT_THAT(explain_workflow(workflow).order,
              HasSubstr("until a person retries, parks or drops it"));
  workflow.ordering = Ordering{OrderingKey::kRecord, BlockKeyFor{std::chrono::minutes{10}}};
  EXPECT_THAT(explain_workflow(workflow).order, HasSubstr("wait 10m"));
}

}  // namespace
}  // namespace hapax::delivery
