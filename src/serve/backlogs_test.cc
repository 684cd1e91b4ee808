#include "serve/backlogs.h"

#include <gtest/gtest.h>

#include "access/no_store_test.h"
#include "base/tenant_frame.h"

namespace hapax::serve {
namespace {

using delivery::Workflow;

constexpr Time kNow = time_from_ms(100'000);

// Every record is as old as its sequence is low: the first came at 1 s, the second at 2 s …
class AgingStore final : public access::NoStore {
 public:
  int reads = 0;
  Result<Records> read(const ReadRange& range) override {
    ++reads;
    Records records;
    const auto at = time_from_ms(static_cast<std::int64_t>(range.from.value) * 1'000);
    records.records.push_back({.sequence = range.from, .time = at});
    return records;
  }
};

Workflow reading(std::string_view id, delivery::WorkflowSource source, std::string tenant = "") {
  Workflow made{.id = delivery::WorkflowId::parse(id).value(), .tenant = std::move(tenant)};
  made.source = std::move(source);
  const auto url = delivery::WebUrl::parse("https://erp.example/in").value();
  made.endpoints = {{.name = "", .target = delivery::HttpTarget{.url = url}}};
  return made;
}

class Backlogs : public testing::Test {
 protected:
  Backlogs() { survey_.store.log_time = kNow; }

  StreamStats& add(std::string name, std::uint64_t first, std::uint64_t last) {
    survey_.streams.push_back(
        {.stream = std::move(name), .first = Sequence{first}, .last = Sequence{last}});
    return survey_.streams.back();
  }
  static void consume(StreamStats& stream, std::string consumer, std::uint64_t floor) {
    stream.consumers.push_back({.consumer = std::move(consumer), .floor = Sequence{floor}});
  }
  [[nodiscard]] Backlog of(const Workflow& workflow) {
    const auto all = take_backlogs(store_, survey_, {workflow});
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? Backlog{} : all.front();
  }

  AgingStore store_;
  Survey survey_;
};

TEST_F(Backlogs, TheOldestRecordThatIsNotAcknowledgedSaysHowFarBehind) {
  StreamStats& orders = add("orders", 1, 90);
  consume(orders, "other", 3);
  consume(orders, "erp", 80);
  const Backlog backlog = of(reading("erp", delivery::FromStream{"orders"}));
  EXPECT_EQ(backlog.records, 10U);
  EXPECT_EQ(backlog.behind, Duration{19'000});  // Record 81 came at 81 s.
}

TEST_F(Backlogs, NothingWaits) {
  consume(add("orders", 1, 90), "erp", 90);
  const Backlog backlog = of(reading("erp", delivery::FromStream{"orders"}));
  EXPECT_EQ(backlog.records, 0U);
  EXPECT_EQ(backlog.behind, Duration{0});
  EXPECT_EQ(store_.reads, 0);
}

TEST_F(Backlogs, AWorkflowThatHasNotBegunIsBehindByAllThatIsKept) {
  add("orders", 41, 90);
  const Backlog backlog = of(reading("erp", delivery::FromStream{"orders"}));
  EXPECT_EQ(backlog.records, 50U);
  EXPECT_EQ(backlog.behind, Duration{59'000});
}

TEST_F(Backlogs, OfTwoStepsBothCount) {
  consume(add("fan.events", 1, 90), "fan", 88);
  consume(add("fan.outbox", 1, 60), "fan", 57);
  const Backlog backlog = of(reading("fan", delivery::FromHttp{}));
  EXPECT_EQ(backlog.records, 5U);
  EXPECT_EQ(backlog.behind, Duration{42'000});
}

// A6: streams of other tenants have the same names.
TEST_F(Backlogs, ATenantsWorkflowReadsItsOwnStreams) {
  consume(add("orders", 1, 90), "erp", 1);
  consume(add(base::StoreName{"acme", "orders"}.text(), 1, 70), "erp", 69);
  add(base::StoreName{"acme", "erp.dead"}.text(), 3, 4);
  const Backlog backlog = of(reading("erp", delivery::FromStream{"orders"}, "acme"));
  EXPECT_EQ(backlog.records, 1U);
  EXPECT_EQ(backlog.dead_letters, 2U);
  EXPECT_EQ(backlog.tenant, "acme");
}

TEST_F(Backlogs, AWorkflowThatDoesNotRunIsNotTold) {
  Workflow off = reading("erp", delivery::FromStream{"orders"});
  off.enabled = false;
  EXPECT_TRUE(take_backlogs(store_, survey_, {off}).empty());
}

}  // namespace
}  // namespace hapax::serve
