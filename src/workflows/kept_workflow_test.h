// A workflow from a stream to one endpoint in a store on disk, without anybody who sends: tests
// receive, settle and log by themselves. Answers of commits can be lost.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <hapax/embedded.h>

#include "delivery/attempt_log.h"
#include "host/clock.h"
#include "host/temporary_folder_test.h"
#include "workflows/own_streams.h"
#include "workflows/plan.h"

namespace hapax::workflows {

class KeptWorkflow : public testing::Test {
 protected:
  // The store as somebody sees it whose next answers are lost.
  class Losing final : public Store {
   public:
    explicit Losing(Store& inner) : inner_(inner) {}
    int lost = 0;                                          // so many of the next answers to commits
    std::function<void(const UnackedScan& scan)> scans{};  // is told before each

    std::string id() override { return inner_.id(); }
    Result<Answer> commit(const Commit& commit) override {
      auto answer = inner_.commit(commit);
      if (lost > 0 && lost-- > 0) return Error{Errc::kOutcomeUnknown, "the answer was lost"};
      return answer;
    }
    void submit(const Commit& commit, Done done) override { done(this->commit(commit)); }
    Result<Records> read(const ReadRange& range) override { return inner_.read(range); }
    Result<std::optional<IdStatus>> find_id(std::string_view stream, std::string_view id,
                                            std::optional<std::string_view> group) override {
      return inner_.find_id(stream, id, group);
    }
    Result<std::optional<ClaimStatus>> find_claim(std::string_view scope,
                                                  std::string_view key) override {
      return inner_.find_claim(scope, key);
    }
    Result<std::optional<RegisterValue>> find_register(std::string_view name) override {
      return inner_.find_register(name);
    }
    Result<RegisterPage> scan_registers(const RegisterScan& scan) override {
      return inner_.scan_registers(scan);
    }
    Result<std::optional<Position>> find_position(std::string_view source) override {
      return inner_.find_position(source);
    }
    Result<std::optional<ProducerStatus>> find_producer(std::string_view stream,
                                                        std::string_view producer) override {
      return inner_.find_producer(stream, producer);
    }
    Result<StreamStats> describe(std::string_view stream) override {
      return inner_.describe(stream);
    }
    Result<UnackedPage> scan_unacked(const UnackedScan& scan) override {
      if (scans) scans(scan);
      return inner_.scan_unacked(scan);
    }
    Result<std::vector<std::string>> streams() override { return inner_.streams(); }
    Result<Statistics> statistics() override { return inner_.statistics(); }

   private:
    Store& inner_;
  };

  KeptWorkflow() {
    EmbeddedOptions options;
    options.log = [](const std::string&) {};
    store_ = open_embedded(folder_.path(), options).value();
    losing_ = std::make_unique<Losing>(*store_);
    workflow_.source = delivery::FromStream{"orders"};
    const auto url = delivery::WebUrl::parse("https://erp.example/in").value();
    workflow_.endpoints = {{.name = "", .target = delivery::HttpTarget{.url = url}}};
    run(CreateStream{"orders", {}});
    run(CreateConsumer{"orders", "erp", delivery::workflow_consumer("erp.dead")});
  }

  Verdict run(const Op& op) {
    const auto answer = store_->commit({.ops = {&op, 1}, .mode = Mode::kEach});
    EXPECT_TRUE(answer.ok());
    return answer->verdicts.front();
  }
  void append(const std::string& id, const std::string& group = {}) {
    Append op{.stream = "orders", .payload = "{}", .id = id};
    if (!group.empty()) op.group = group;
    EXPECT_TRUE(std::holds_alternative<Appended>(run(op)));
  }
  std::vector<Delivery> receive(std::uint32_t max = 100) {
    const Verdict received = run(Receive{"orders", "erp", max, Duration{60'000}, "w"});
    return std::get<Received>(received).deliveries;
  }
  [[nodiscard]] static Receipt receipt_of(const Delivery& delivery) {
    return {delivery.record.sequence, delivery.token};
  }
  [[nodiscard]] std::string key_for(const Record& record) {
    const auto uid = store_->read({.stream = "orders", .max = 1})->stream_uid;
    return key_of(workflow_, store_->id())(record, uid).value();
  }
  // All that is there now is sent and confirmed, as the log tells it.
  std::vector<Record> deliver() {
    delivery::AttemptLog log(*store_, clock_, *attempt_log_of(workflow_), {});
    EXPECT_TRUE(log.look().ok());
    std::vector<Record> records;
    for (const Delivery& each : receive()) {
      run(Ack{"orders", "erp", receipt_of(each)});
      const std::uint32_t replay = each.record.lineage ? each.record.lineage->redrives : 0;
      log.note({delivery::Attempt{.key = key_for(each.record),
                                  .place = each.record.sequence.value,
                                  .replay = replay,
                                  .began_ms = clock_.steady_ms()}});
      records.push_back(each.record);
    }
    log.write();
    return records;
  }
  void give_up(const std::string& reason) {
    for (const Delivery& each : receive()) {
      run(Nack{.stream = "orders",
               .consumer = "erp",
               .receipt = receipt_of(each),
               .reason = reason,
               .last = true});
    }
  }

  host::TemporaryFolder folder_;
  host::HostClock clock_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Losing> losing_;
  delivery::Workflow workflow_{.id = delivery::WorkflowId::parse("erp").value()};
};

}  // namespace hapax::workflows
