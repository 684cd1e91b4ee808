#include "delivery/workflow_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delivery/workflow_test.h"

namespace hapax::delivery {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> told(const Workflow& workflow, const WorkflowSurroundings& around = {}) {
  std::vector<std::string> lines;
  for (const WorkflowFinding& finding : check_workflow(workflow, around)) {
    const bool refused = finding.weight == WorkflowFinding::Weight::kRefuse;
    lines.push_back((refused ? "refuse " : "warn ") + finding.path + " " + finding.sentence);
  }
  return lines;
}

HttpTarget& target_of(Workflow& workflow) {
  return std::get<HttpTarget>(workflow.endpoints.at(0).target);
}

TEST(CheckWorkflow, ASoundOneHasNoFindings) { EXPECT_THAT(told(sound_workflow()), IsEmpty()); }

TEST(CheckWorkflow, ADraftIsToldSo) {
  const Workflow draft{WorkflowId::parse("a").value()};
  EXPECT_TRUE(draft.draft());
  EXPECT_THAT(told(draft), ElementsAre(HasSubstr("warn source and endpoint are missing")));
  Workflow half = sound_workflow();
  half.endpoints.clear();
  EXPECT_THAT(told(half), ElementsAre(HasSubstr("warn endpoint is missing")));
}

TEST(CheckWorkflow, AKeyWithoutTheChangeVersionSwallowsLaterChanges) {
  Workflow workflow = sound_workflow();
  workflow.delivery.key.format =
      KeyFormat::of({KeyField::kDatabase, KeyField::kTable, KeyField::kPrimaryKey});
  EXPECT_THAT(told(workflow),
              ElementsAre(AllOf(HasSubstr("warn delivery.deduplication.keyFields lacks change"),
                                HasSubstr("30d"))));
  workflow.source.reset();
  EXPECT_THAT(told(workflow)[1], AllOf(HasSubstr("refuse delivery.deduplication.keyFields lacks"),
                                       HasSubstr("swallowed for the ttl of 30d")));
  workflow = sound_workflow();
  workflow.delivery.key.format = KeyFormat::of({KeyField::kTable, KeyField::kChangeVersion});
  EXPECT_THAT(told(workflow), ElementsAre(HasSubstr("refuse delivery.deduplication.keyFields "
                                                    "lacks primaryKey")));
  workflow.delivery.guarantee = Guarantee::kAtLeastOnce;  // no key decides anything
  EXPECT_THAT(told(workflow), IsEmpty());
}

TEST(CheckWorkflow, AKeyOfItsOwnMustTellRecordsApart) {
  Workflow workflow = sound_workflow();
  const auto told_of = [&](std::string_view format) {
    workflow.delivery.key.format = KeyFormat::parse(format).value();
    const auto all = told(workflow);
    return all.empty() ? std::string() : all.front();
  };
  for (const char* one : {"{table}", "{eventType}", "{database}:{table}:{eventType}"}) {
    EXPECT_THAT(told_of(one), HasSubstr("refuse delivery.deduplication.keyFields lacks")) << one;
  }
  EXPECT_THAT(told_of("{payload:/id}"),
              AllOf(HasSubstr("warn delivery.idempotencyKey.format makes no difference"),
                    HasSubstr("{payload:/id}: both are sent, under one key")));
  workflow.delivery.guarantee = Guarantee::kAtMostOnce;
  EXPECT_THAT(told_of("{groupKey}:{header:x-a}"), HasSubstr("without being sent"));
  workflow.delivery.guarantee = Guarantee::kAtLeastOnce;
  EXPECT_EQ(told_of("{payload:/id}"), "") << "no key decides anything";
  workflow.transform = TransformSettings{.jq = "."};
  EXPECT_THAT(told_of("{payload:/id}"), HasSubstr("the second one is not sent"));
}

// An event and a row of an outbox have an id and no version.
TEST(CheckWorkflow, AKeyOfItsOwnIsMadeOfWhatTheSourceHas) {
  Workflow workflow = sound_workflow();
  workflow.delivery.key.format = KeyFormat::parse("{changeVersion}:{payload:/id}").value();
  EXPECT_THAT(told(workflow),
              ElementsAre(HasSubstr("warn delivery.idempotencyKey.format has cha")));
  workflow.source = FromHttp{};
  EXPECT_THAT(
      told(workflow),
      ElementsAre(AllOf(HasSubstr("refuse delivery.idempotencyKey.format has changeVersion"),
                        HasSubstr("each would be a dead letter"))));
  workflow.source = FromOutbox{SecretText::parse("${env:SHOP}").value(), OwnOutboxTables{}};
  EXPECT_THAT(told(workflow), ElementsAre(HasSubstr("refuse")));
  workflow.delivery.key.format = KeyFormat::parse("{primaryKey}:{payload:/id}").value();
  EXPECT_THAT(told(workflow), IsEmpty());
}

TEST(CheckWorkflow, KeysOfPublishersAreSecrets) {
  Workflow workflow = sound_workflow();
  workflow.source_keys = {secret("${env:NEW}"), secret("whsec_hunter2")};
  EXPECT_THAT(told(workflow), ElementsAre(AllOf(HasSubstr("warn source.signature.keys.1.key is a"),
                                                testing::Not(HasSubstr("hunter2")))));
}

// Lanes let no two have one record: each would get a part.
TEST(CheckWorkflow, AnOutboxHasOneWorkflow) {
  std::vector<Workflow> all(3, sound_workflow());
  all[1].id = WorkflowId::parse("second").value();
  all[2].id = WorkflowId::parse("other").value();
  const FromOutbox shop{SecretText::parse("${env:SHOP}").value(), OwnOutboxTables{}};
  all[0].source = all[1].source = shop;
  all[2].source = FromOutbox{shop.database, OwnOutboxTables{.schema = "more", .prefix = {}}};
  const auto first_told = [&](const Workflow& workflow) {
    const WorkflowIndex index(all);
    return told(workflow, {.index = &index});
  };
  EXPECT_THAT(first_told(all[0]), IsEmpty());
  EXPECT_THAT(first_told(all[1]),
              ElementsAre(AllOf(HasSubstr("refuse source.database is the outbox of workflow"),
                                HasSubstr(all[0].id.text()))));
  EXPECT_THAT(first_told(all[2]), IsEmpty());
  all[0].enabled = false;
  EXPECT_THAT(first_told(all[1]), IsEmpty());
}

TEST(CheckWorkflow, ATtlShorterThanTheRetriesIsShownWithBothNumbers) {
  Workflow workflow = sound_workflow();
  workflow.delivery.dedup_ttl = minutes{2};
  // 1 + 2 + 5 + 10 s, and four requests of 30 s.
  EXPECT_THAT(told(workflow),
              ElementsAre(AllOf(HasSubstr("refuse delivery.deduplication.ttl 2m is shorter"),
                                HasSubstr("5 attempts with pauses of 18s and requests of 2m"),
                                HasSubstr("up to 2m18s (giveUpAfter 1h)"))));
  workflow.delivery.dedup_ttl = minutes{5};
  EXPECT_THAT(told(workflow), ElementsAre(AllOf(HasSubstr("warn delivery.deduplication.ttl 5m"),
                                                HasSubstr("Retry-After can stretch them to 1h"))));
  workflow.delivery.dedup_ttl = hours{1};
  EXPECT_THAT(told(workflow), IsEmpty());
}

TEST(CheckWorkflow, ExactlyOnceOverHttpSaysWhatRemains) {
  Workflow workflow = sound_workflow();
  workflow.delivery.guarantee = Guarantee::kExactlyOnce;
  EXPECT_THAT(told(workflow), IsEmpty());
  target_of(workflow).nature = NatureNotSaid{};
  EXPECT_THAT(told(workflow), ElementsAre(AllOf(HasSubstr("warn endpoint.nature is not said"),
                                                HasSubstr("what remains"))));
  workflow.delivery.guarantee = Guarantee::kIdempotentKeys;
  EXPECT_THAT(told(workflow), IsEmpty());
}

TEST(CheckWorkflow, ClientsAreNotToldThatTheyNeedNotDeduplicate) {
  Workflow workflow = sound_workflow();
  workflow.delivery.documentation.deduplication_required = false;
  EXPECT_THAT(told(workflow),
              ElementsAre(HasSubstr("refuse delivery.documentation.deduplicationRequired")));
  workflow.endpoints[0].target = StreamTarget{"out"};
  EXPECT_THAT(told(workflow), IsEmpty());
}

TEST(CheckWorkflow, AShortKeyIsToldItsBits) {
  Workflow workflow = sound_workflow();
  workflow.delivery.key.form = KeyForm::kShort;
  EXPECT_THAT(told(workflow), ElementsAre(HasSubstr("72 bits, not 256")));
}

TEST(CheckWorkflow, AMechanismMustKeepItsGuarantee) {
  Workflow workflow = sound_workflow();
  workflow.delivery.mechanism = Mechanism::kTransactionalOutbox;
  EXPECT_THAT(told(workflow), ElementsAre(HasSubstr("refuse delivery.mechanism transactional")));
  workflow.delivery.mechanism = Mechanism::kGeneratedKeys;
  EXPECT_THAT(told(workflow), IsEmpty());
  workflow.delivery.guarantee = Guarantee::kAtLeastOnce;
  workflow.delivery.mechanism = Mechanism::kKafkaOffsets;
  EXPECT_THAT(told(workflow), ElementsAre(HasSubstr("warn delivery.mechanism")));
}

TEST(CheckWorkflow, RetriesFitTheGuarantee) {
  Workflow workflow = sound_workflow();
  workflow.delivery.guarantee = Guarantee::kAtLeastOnce;
  workflow.delivery.retries.attempts_max = 1;
  EXPECT_THAT(told(workflow), ElementsAre(HasSubstr("warn delivery.retries.enabled allows 1 "
                                                    "attempt under at-least-once")));
  workflow.delivery.guarantee = Guarantee::kAtMostOnce;
  EXPECT_THAT(told(workflow), IsEmpty());
  workflow.delivery.retries.attempts_max = 3;
  EXPECT_THAT(told(workflow), ElementsAre(HasSubstr("warn delivery.retries allows 3 attempts")));
}

TEST(CheckWorkflow, SecretsInClearTextAreWarnedOfAndNotRepeated) {
  Workflow workflow = sound_workflow();
  HttpTarget& http = target_of(workflow);
  http.headers = {{"Authorization", secret("Bearer hunter2")}, {"X-Source", secret("shop")}};
  http.auth = OAuth2Auth{WebUrl::parse("https://id.example/token").value(), secret("me"),
                         secret("hunter2")};
  workflow.source = FromOutbox{secret("postgres://u:hunter2@h/db"), OwnOutboxTables{}};
  const auto lines = told(workflow);
  EXPECT_THAT(lines, ElementsAre(HasSubstr("warn source.database"),
                                 HasSubstr("warn endpoint.headers.Authorization"),
                                 HasSubstr("warn endpoint.auth.clientSecret")));
  for (const std::string& line : lines) EXPECT_THAT(line, Not(HasSubstr("hunter2")));
}

TEST(CheckWorkflow, ATenantReadsNothingOfTheServer) {
  Workflow workflow = sound_workflow();
  target_of(workflow).auth = BearerAuth{secret("${env:HAPAX_TOKEN}")};
  EXPECT_THAT(told(workflow), IsEmpty());
  WorkflowSurroundings around;
  around.origin = WorkflowOrigin::kTenant;
  EXPECT_THAT(told(workflow, around), ElementsAre(HasSubstr("refuse endpoint.auth.token")));
  target_of(workflow).auth = BearerAuth{secret("${secret:erp}")};
  EXPECT_THAT(told(workflow, around), IsEmpty());
  target_of(workflow).auth = MutualTlsAuth{"/etc/a", "/etc/b"};
  EXPECT_THAT(told(workflow, around), ElementsAre(HasSubstr("refuse endpoint.auth.type")));
  target_of(workflow).auth = NoAuth{};
  target_of(workflow).headers = {{"X-Source", secret("${file:/etc/passwd}")}};
  EXPECT_THAT(told(workflow, around), ElementsAre(HasSubstr("refuse endpoint.headers.X-Source")));
}

TEST(CheckWorkflow, TheWayToTheEndpointIsJudged) {
  Workflow workflow = sound_workflow();
  target_of(workflow) = http_target("http://erp.example/a");
  EXPECT_THAT(told(workflow), ElementsAre(AllOf(HasSubstr("warn endpoint.url is http to"),
                                                HasSubstr("erp.example"))));
  target_of(workflow) = http_target("http://127.0.0.1:9/a");
  EXPECT_THAT(told(workflow), IsEmpty());
  target_of(workflow) = http_target();
  target_of(workflow).tls.verify = false;
  EXPECT_THAT(told(workflow), ElementsAre(HasSubstr("warn endpoint.tls.verify")));
}

TEST(CheckWorkflow, ConcurrencyWithoutAWordOnOrderIsToldWhatItMeans) {
  Workflow workflow = sound_workflow();
  workflow.endpoints[0].concurrency = 16;
  EXPECT_THAT(told(workflow), ElementsAre(HasSubstr("warn endpoint.concurrency is 16")));
  workflow.ordering = Ordering{OrderingKey::kNone};
  EXPECT_THAT(told(workflow), IsEmpty());
}

TEST(CheckWorkflow, IdsAndNamesAreThereOnce) {
  std::vector<Workflow> all{sound_workflow("a"), sound_workflow("b"), sound_workflow("b"),
                            sound_workflow("b")};
  all[3].tenant = "acme";
  const WorkflowIndex index(all);
  const WorkflowSurroundings around{&index};
  EXPECT_THAT(told(all[0], around), IsEmpty());
  EXPECT_THAT(told(all[1], around), IsEmpty());
  EXPECT_THAT(told(all[2], around), ElementsAre(HasSubstr("refuse id 'b'")));
  EXPECT_THAT(told(all[3], around), IsEmpty());
  Workflow workflow = sound_workflow();
  workflow.endpoints = {{"x", http_target()}, {"x", http_target()}};
  EXPECT_THAT(told(workflow), ElementsAre(HasSubstr("refuse endpoints.1.name 'x'")));
}

TEST(CheckWorkflow, AStreamIsNotItsOwnTarget) {
  Workflow workflow = sound_workflow();
  workflow.endpoints[0].target = StreamTarget{"orders"};
  const std::vector<Workflow> alone{workflow};
  const WorkflowIndex index(alone);
  const WorkflowSurroundings around{&index};
  EXPECT_THAT(told(alone[0], around), ElementsAre(HasSubstr("refuse endpoint.stream is the "
                                                            "source 'orders' itself")));
}

TEST(CheckWorkflow, WorkflowsThatFeedEachOtherAreFound) {
  Workflow there = sound_workflow("there");
  there.endpoints[0].target = StreamTarget{"b"};
  Workflow back = sound_workflow("back");
  back.source = FromStream{"b"};
  back.endpoints[0].target = StreamTarget{"orders"};
  Workflow onlooker = sound_workflow("onlooker");
  onlooker.source = FromStream{"c"};
  onlooker.endpoints[0].target = StreamTarget{"b"};
  const std::vector<Workflow> all{there, back, onlooker};
  const WorkflowIndex index(all);
  const WorkflowSurroundings around{&index};
  EXPECT_THAT(told(all[0], around), ElementsAre(HasSubstr("warn source.stream 'orders'")));
  EXPECT_THAT(told(all[1], around), ElementsAre(HasSubstr("warn source.stream 'b'")));
  EXPECT_THAT(told(all[2], around), IsEmpty());
}

TEST(CheckWorkflow, AStreamThatForgetsBeforeTheRetriesEndIsRefused) {
  Workflow workflow = sound_workflow();
  workflow.endpoints[0].target = StreamTarget{"out"};
  std::vector<StreamWindow> streams{{"", "out", Window{minutes{30}}}};
  WorkflowSurroundings around;
  around.streams = streams;
  EXPECT_THAT(told(workflow, around), ElementsAre(AllOf(HasSubstr("refuse endpoint.stream"),
                                                        HasSubstr("for 30m"), HasSubstr("1h"))));
  streams[0].window = Window{hours{1}};
  EXPECT_THAT(told(workflow, around), IsEmpty());
}

TEST(CheckWorkflow, SpansAreShownAsTheyAreWritten) {
  EXPECT_EQ(span_text(seconds{0}), "0s");
  EXPECT_EQ(span_text(Duration{1'500}), "1s500ms");
  EXPECT_EQ(span_text(days{30}), "30d");
  EXPECT_EQ(span_text(hours{25} + minutes{1}), "1d1h1m");
}

TEST(CheckWorkflow, TimesWithoutASigningKeyAreTold) {
  const auto at = [](int day) { return time_from_ms(std::int64_t{day} * 86'400'000); };
  const auto signed_by = [&](std::vector<SigningTerm> terms) {
    Workflow workflow = sound_workflow();
    for (SigningTerm& term : terms) term.key = secret("${env:K}");
    target_of(workflow).signing = std::move(terms);
    return told(workflow);
  };
  EXPECT_THAT(signed_by({{}}), IsEmpty());
  EXPECT_THAT(signed_by({{.until = at(2)}, {.from = at(1)}}), IsEmpty());
  EXPECT_THAT(signed_by({{.from = at(1)}, {.until = at(1)}}), IsEmpty());
  EXPECT_THAT(signed_by({{.until = at(1)}, {.from = at(2)}}),
              ElementsAre(HasSubstr("warn endpoint.signing has no key from 1970-01-02T00:00:00Z to "
                                    "1970-01-03T00:00:00Z: nothing is sent meanwhile")));
  EXPECT_THAT(signed_by({{.from = at(1), .until = at(2)}, {.until = at(3)}}),
              ElementsAre(HasSubstr("warn endpoint.signing has no key from 1970-01-04T00:00:00Z on:"
                                    " nothing is sent then")));
}

TEST(CheckWorkflow, ASigningKeyInClearTextIsWarnedOf) {
  Workflow workflow = sound_workflow();
  target_of(workflow).signing = {{secret("whsec_hunter2")}};
  EXPECT_THAT(told(workflow), ElementsAre(AllOf(HasSubstr("warn endpoint.signing.keys.0.key is a"),
                                                Not(HasSubstr("hunter2")))));
  WorkflowSurroundings around;
  around.origin = WorkflowOrigin::kTenant;
  target_of(workflow).signing = {{secret("${env:K}")}};
  EXPECT_THAT(told(workflow, around),
              ElementsAre(HasSubstr("refuse endpoint.signing.keys.0.key refers to a variable")));
}

TEST(CheckWorkflow, AnEnvelopeHoldsTheKey) {
  Workflow workflow = sound_workflow();
  workflow.delivery.key.in_payload = false;
  EXPECT_THAT(told(workflow), IsEmpty());
  target_of(workflow).body = EnvelopeBody{};
  EXPECT_THAT(told(workflow), ElementsAre(HasSubstr("refuse endpoint.body is envelope")));
  target_of(workflow).body = PayloadBody{};
  EXPECT_THAT(told(workflow), IsEmpty());
}

}  // namespace
}  // namespace hapax::delivery
