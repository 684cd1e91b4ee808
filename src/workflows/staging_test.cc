#include "workflows/staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"
#include "signing/delivery_key.h"
#include "workflows/own_streams.h"
#include "workflows/plan.h"

namespace hapax::workflows {
namespace {

using delivery::Outgoing;
using delivery::Reshaped;
using delivery::StagedRecord;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

delivery::EndpointSettings web(std::string name, std::vector<std::string> types = {}) {
  return {
      .name = std::move(name),
      .target =
          delivery::HttpTarget{.url = delivery::WebUrl::parse("https://erp.example/in").value()},
      .event_types = std::move(types)};
}

class Staging : public testing::Test {
 protected:
  Staging() {
    workflow_.source = delivery::FromStream{"orders"};
    workflow_.endpoints = {web("")};
    workflow_.transform = delivery::TransformSettings{.jq = "."};
    record_.sequence = Sequence{7};
    record_.time = time_from_ms(1'700'000'000'123);
    record_.id = "order-17";
    record_.group = "customer-1";
    record_.headers = {{"Content-Type", "text/xml"},
                       {std::string(delivery::kTypeHeader), "OrderCreated"},
                       {"traceparent", "00-ab"}};
  }
  [[nodiscard]] std::vector<StagedRecord> compose(std::vector<Reshaped> outputs) const {
    return compose_of(workflow_, "5f0c2a7be1d94836")(record_, 42, std::move(outputs)).value();
  }
  [[nodiscard]] static std::string key(const signing::FanOut& fan_out) {
    const signing::StreamOrigin origin{
        .store = "5f0c2a7be1d94836", .stream = "42", .record = std::string_view("order-17")};
    return signing::DeliveryKey::make(origin, fan_out).value().text();
  }
  // As the source reads it from the outbox.
  [[nodiscard]] static Outgoing read(const StagedRecord& staged) {
    Outgoing record;
    record.id = staged.id;
    record.key = staged.group;
    record.payload = staged.payload;
    bool typed = false;
    for (const auto& [name, value] : staged.headers) {
      if (name == delivery::kTypeHeader && !std::exchange(typed, true)) {
        record.type = value;
      } else {
        record.headers.emplace_back(name, value);
      }
    }
    return record;
  }

  delivery::Workflow workflow_{.id = delivery::WorkflowId::parse("erp").value()};
  Record record_;
};

TEST_F(Staging, IsForWhatCannotGoDirectly) {
  EXPECT_TRUE(is_staged(workflow_));
  EXPECT_TRUE(has_outbox(workflow_));
  workflow_.transform.reset();
  EXPECT_FALSE(is_staged(workflow_));
  workflow_.endpoints = {web("a"), web("b")};
  EXPECT_TRUE(is_staged(workflow_));
  workflow_.endpoints = {{.name = "", .target = delivery::StreamTarget{"copies"}}};
  EXPECT_TRUE(is_staged(workflow_));
  EXPECT_FALSE(has_outbox(workflow_));
  EXPECT_FALSE(stager_settings(workflow_, "me").outbox);
}

// The first output of the only endpoint has the key that the record itself would have.
TEST_F(Staging, KeysTellOutputsAndEndpointsApart) {
  const auto alone = compose({{.payload = "1"}, {.payload = "2"}});
  ASSERT_EQ(alone.size(), 2U);
  EXPECT_EQ(alone[0].id, key({}));
  EXPECT_EQ(alone[1].id, key({.output = 1}));
  workflow_.endpoints = {web("crm"), web("search")};
  const auto both = compose({{.payload = "1"}, {.payload = "2"}});
  ASSERT_EQ(both.size(), 4U);
  EXPECT_EQ(both[0].id, key({.output = 0, .endpoint = "crm"}));
  EXPECT_EQ(both[3].id, key({.output = 1, .endpoint = "search"}));
}

// V9: also if nothing would come of it, and the signature goes no further.
TEST_F(Staging, MakesNothingOfARecordThatWasChanged) {
  const std::string key = "whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1u";
  const std::vector<std::string> keys{key};
  const auto verifier = std::make_shared<const EventVerifier>(EventVerifier::make(keys).value());
  const auto compose = [&](std::vector<Reshaped> outputs) {
    return compose_of(workflow_, "5f0c2a7be1d94836", verifier)(record_, 42, std::move(outputs));
  };
  record_.payload = R"({"total":1})";
  EXPECT_THAT(compose({{.payload = "1"}}).error().detail, HasSubstr("signature is missing"));
  record_.headers.emplace_back(
      "Hapax-Signature",
      sign_event({"order-17", "OrderCreated", "customer-1", R"({"total":1})"}, key).value());
  const auto good = compose({{.payload = "1"}});
  ASSERT_TRUE(good.ok()) << good.error().text();
  for (const auto& [name, value] : good->front().headers) EXPECT_NE(name, "Hapax-Signature");
  record_.payload = R"({"total":2})";
  EXPECT_THAT(compose({}).error().detail, HasSubstr("does not match"));
  // Without a transform the payload is that of the output.
  workflow_.transform.reset();
  workflow_.endpoints = {web("a"), web("b")};
  record_.payload.clear();
  EXPECT_EQ(compose({{.payload = R"({"total":1})"}})->size(), 2U);
  EXPECT_FALSE(compose({{.payload = R"({"total":2})"}}).ok());
}

TEST_F(Staging, ComesBackAsItWasPublished) {
  workflow_.endpoints = {web("crm"), web("search")};
  record_.lineage = Lineage{.stream = "orders", .sequence = Sequence{3}, .redrives = 2};
  const auto staged = compose({{.payload = "{}"}});
  ASSERT_EQ(staged.size(), 2U);
  EXPECT_EQ(staged[1].stream, "erp.outbox");
  EXPECT_EQ(staged[1].group, "search/customer-1");
  Outgoing back = read(staged[1]);
  back.replay = 1;
  EXPECT_EQ(route_from_outbox(workflow_)(back), 1U);
  EXPECT_EQ(back.flaw, "");
  EXPECT_EQ(back.type, "OrderCreated");
  EXPECT_EQ(back.key, "customer-1");
  EXPECT_EQ(back.time, record_.time);
  EXPECT_EQ(back.replay, 3U);
  EXPECT_THAT(back.headers, ElementsAre(Pair("traceparent", "00-ab")));
}

// The mark of the outbox must not make a dead letter of it.
TEST_F(Staging, AsManyHeadersAsARecordMayHaveComeBack) {
  workflow_.transform.reset();
  for (const bool typed : {true, false}) {
    record_.headers.clear();
    if (typed) record_.headers.emplace_back(delivery::kTypeHeader, "OrderCreated");
    while (record_.headers.size() < limits::kHeadersMax) {
      record_.headers.emplace_back(base::format("h{}", record_.headers.size()), "a\nb: 3:x");
    }
    // A transform that says a type where there was none makes one more.
    const auto staged = compose({{.payload = "{}", .type = "Other"}});
    ASSERT_EQ(staged.size(), 1U);
    EXPECT_EQ(staged.front().headers.size(), limits::kHeadersMax);
    Outgoing record = read(staged.front());
    ASSERT_EQ(route_from_outbox(workflow_)(record), 0U);
    EXPECT_EQ(record.type, "Other");
    EXPECT_EQ(record.flaw, "");
    const std::size_t first = typed ? 1 : 0;
    EXPECT_EQ(record.headers, std::vector(record_.headers.begin() + static_cast<int>(first),
                                          record_.headers.end()));
  }
}

TEST_F(Staging, WithoutATransformItKeepsItsContentType) {
  workflow_.transform.reset();
  workflow_.endpoints = {web("crm"), web("search")};
  Outgoing back = read(compose({{.payload = "<a/>"}}).front());
  ASSERT_EQ(route_from_outbox(workflow_)(back), 0U);
  EXPECT_THAT(back.headers, ElementsAre(Pair("Content-Type", "text/xml"), testing::_));
}

TEST_F(Staging, EachEndpointGetsItsEventTypes) {
  workflow_.endpoints = {web("crm", {"Order*"}), web("search", {"Product*"})};
  const auto staged = compose({{.payload = "1"}, {.payload = "2", .type = "ProductMade"}});
  ASSERT_EQ(staged.size(), 2U);
  EXPECT_EQ(staged[0].id, key({.output = 0, .endpoint = "crm"}));
  EXPECT_EQ(staged[1].id, key({.output = 1, .endpoint = "search"}));
  EXPECT_EQ(read(staged[1]).type, "ProductMade");
}

// V9: a signature covers the first type, so no later one may count.
TEST_F(Staging, ALaterTypeNeverCounts) {
  workflow_.transform.reset();
  workflow_.endpoints = {web("crm"), web("search")};
  for (const std::string first : {"", "OrderCreated"}) {
    record_.headers = {{std::string(delivery::kTypeHeader), first},
                       {std::string(delivery::kTypeHeader), "OrderRefunded"}};
    EXPECT_EQ(read(compose({{.payload = "{}"}}).front()).type, first);
  }
}

TEST_F(Staging, AStreamGetsTheRecordUnderItsKey) {
  workflow_.endpoints = {{.name = "", .target = delivery::StreamTarget{"copies"}}};
  const auto staged = compose({{.payload = "1", .key = "customer-2"}});
  ASSERT_EQ(staged.size(), 1U);
  EXPECT_EQ(staged[0].stream, "copies");
  EXPECT_EQ(staged[0].group, "customer-2");
  EXPECT_EQ(staged[0].id, key({}));
  EXPECT_THAT(staged[0].headers,
              ElementsAre(Pair("event_type", "OrderCreated"), Pair("traceparent", "00-ab")));
}

TEST_F(Staging, ALongKeyIsShortenedInTheOutboxOnly) {
  workflow_.endpoints = {web("crm"), {.name = "copy", .target = delivery::StreamTarget{"copies"}}};
  record_.group = std::string(255, 'k');
  const auto staged = compose({{.payload = "1"}});
  ASSERT_EQ(staged.size(), 2U);
  EXPECT_EQ(staged[0].group.size(), 64U);
  EXPECT_EQ(staged[1].group, record_.group);
}

// A publisher cannot choose the endpoint, and nothing is passed over that has none any more.
TEST_F(Staging, WhatHasNoEndpointIsADeadLetter) {
  workflow_.endpoints = {web("crm"), web("search")};
  record_.headers = {{"hapax-staged", "1 0 0 search"}};
  const auto staged = compose({{.payload = "1"}});
  Outgoing back = read(staged.front());
  EXPECT_EQ(route_from_outbox(workflow_)(back), 0U);
  EXPECT_EQ(back.flaw, "");
  Outgoing other = read(staged.back());
  workflow_.endpoints = {web("crm"), web("archive")};
  EXPECT_EQ(route_from_outbox(workflow_)(other), 0U);
  EXPECT_THAT(other.flaw, HasSubstr("no endpoint 'search' any more"));
  for (const char* mark : {"", "1", "1 2", "2 1 1 crm", "1 x 1 crm", "1 1 -1 crm"}) {
    Outgoing strange;
    strange.headers = {{"hapax-staged", mark}};
    EXPECT_EQ(route_from_outbox(workflow_)(strange), 0U) << mark;
    EXPECT_THAT(strange.flaw, HasSubstr("not put into the outbox")) << mark;
  }
}

// An outbox remembers ids for as long as its records may be there.
TEST_F(Staging, TheWindowOfTheOutboxOutlivesWhatItKeeps) {
  workflow_.delivery.dedup_ttl = std::chrono::hours{1};
  workflow_.retention.delivered = std::chrono::days{40};
  EXPECT_EQ(outbox_of(workflow_).settings.window, Window{std::chrono::days{40}});
  workflow_.retention.delivered = std::chrono::days{4'000};
  EXPECT_EQ(outbox_of(workflow_).settings.window, Window{limits::kWindowMax});
}

// An endpoint that takes nothing cannot fill the window of the others.
TEST_F(Staging, TheWindowHasRoomForAllEndpoints) {
  for (const std::size_t count : {2U, 10U, 100U, 1'000U}) {
    workflow_.endpoints.clear();
    for (std::size_t i = 0; i < count; ++i) workflow_.endpoints.push_back(web(std::to_string(i)));
    std::size_t held = 0;
    class NoEntropy final : public ports::Entropy {
     public:
      void fill(std::span<std::byte>) override {}
    } entropy;
    for (const auto& endpoint : workflow_.endpoints) {
      held += policy_of(workflow_, endpoint, entropy).held_max;
    }
    EXPECT_GE(engine_settings(workflow_).window, held) << count;
  }
}

}  // namespace
}  // namespace hapax::workflows
