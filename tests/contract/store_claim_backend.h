// The claims of a store, behind the port of the suite of claims.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "claim_backend.h"
#include "store_contract.h"

namespace hapax::contract {

class StoreClaimBackend final : public ClaimBackend {
 public:
  explicit StoreClaimBackend(std::unique_ptr<Store> store) : store_(std::move(store)) {}

  Told run(const Op& op, std::optional<std::string_view> commit_id) override {
    const Answer answer = commit({op}, commit_id);
    return {answer.verdicts.front(), {answer.time, answer.time}, answer.repeated};
  }
  bool settle_with_effect(const Settle& settle, First first) override {
    const Append effect{.stream = "effects", .payload = "paid"};
    commit({CreateStream{"effects", {}}}, {});
    return first == First::kSettle ? commit({settle, effect}, {}).committed
                                   : commit({effect, settle}, {}).committed;
  }
  std::uint64_t effects() override { return store_->describe("effects").value().last.value; }

  std::optional<ClaimStatus> find(std::string_view scope, std::string_view key) override {
    return store_->find_claim(scope, key).value();
  }
  std::vector<std::string> audit() override {
    return payloads(store_->read({.stream = "$audit", .max = limits::kReadMax}).value().records);
  }
  Counts counts() override {
    const Statistics told = store_->statistics().value();
    return {told.claims_open, told.claims_unknown, told.fenced};
  }
  Time now() override { return store_->statistics().value().log_time; }
  void churn() override { contract::churn(*store_); }

 private:
  Answer commit(const std::vector<Op>& ops, std::optional<std::string_view> id) {
    Commit commit;
    commit.ops = ops;
    commit.id = id;
    auto answer = store_->commit(commit);
    if (answer) return *std::move(answer);
    ADD_FAILURE() << answer.error().text();
    return Answer{false, false, {}, std::vector<Verdict>(ops.size(), NotApplied{})};
  }

  const std::unique_ptr<Store> store_;
};

// Every store of the contract, with all that the suite asks for.
inline std::vector<ClaimBackendKind> store_claim_backends() {
  std::vector<ClaimBackendKind> kinds;
  for (const StoreKind& kind : all_stores()) {
    const auto open = [kind](const std::filesystem::path& folder) {
      return std::make_unique<StoreClaimBackend>(std::move(kind.open(folder)).value());
    };
    kinds.push_back({kind.name, open});
  }
  return kinds;
}

}  // namespace hapax::contract
