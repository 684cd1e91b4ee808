// The store as one tenant sees it: names go in as the tenant says them and come back so, and what
// is another's is not there. Cheap to make. The tenant without a name sees what is no other's.
//
// It is what doors and the server ask; below it, names have their tenant's frame.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/store.h>

#include "access/tenant_names.h"

namespace hapax::access {

// A name that would reach into another tenant is refused (kInvalidArgument). Shares are for the
// operator of the whole store to set: set_shares() does nothing here.
class TenantStore final : public Store {
 public:
  TenantStore(Store& store, std::string_view tenant)
      : store_(store), tenant_(tenant), names_(tenant_) {}

  [[nodiscard]] std::string id() override { return store_.id(); }
  [[nodiscard]] Result<Answer> commit(const Commit& commit) override;
  void submit(const Commit& commit, Done done) override;
  void submit_here(const Commit& commit, Done done) override;

  [[nodiscard]] Result<Records> read(const ReadRange& range) override;
  [[nodiscard]] Result<std::optional<IdStatus>> find_id(
      std::string_view stream, std::string_view id, std::optional<std::string_view> group) override;
  [[nodiscard]] Result<std::optional<ClaimStatus>> find_claim(std::string_view scope,
                                                              std::string_view key) override;
  [[nodiscard]] Result<std::optional<RegisterValue>> find_register(std::string_view name) override;
  [[nodiscard]] Result<RegisterPage> scan_registers(const RegisterScan& scan) override;
  [[nodiscard]] Result<std::optional<Position>> find_position(std::string_view source) override;
  [[nodiscard]] Result<std::optional<ProducerStatus>> find_producer(
      std::string_view stream, std::string_view producer) override;
  [[nodiscard]] Result<StreamStats> describe(std::string_view stream) override;
  [[nodiscard]] Result<UnackedPage> scan_unacked(const UnackedScan& scan) override;
  [[nodiscard]] Result<std::vector<std::string>> streams() override;
  // A page may be empty though there are more.
  [[nodiscard]] Result<StreamPage> scan_streams(const StreamScan& scan) override;
  // Of a tenant that has a name: what is counted for each (Store::tenants()), the time, and how the
  // store does. The other figures tell of everybody, and are 0.
  [[nodiscard]] Result<Statistics> statistics() override;

  // 0, and never a call, if the name is refused.
  [[nodiscard]] std::uint64_t watch(const Watch& watch, Changed changed) override;
  void unwatch(std::uint64_t number) override { store_.unwatch(number); }

  // Of itself; the tenant without a name is the operator, and sees all.
  [[nodiscard]] Result<std::vector<TenantUse>> tenants() override;

 private:
  // Asks the store for `name` as the store knows it, and tells the answer as the tenant knows it.
  template <class Ask>
  [[nodiscard]] auto ask(std::string_view name, const Ask& ask) const
      -> decltype(ask(std::string_view()));

  Store& store_;
  const std::string tenant_;
  const TenantNames names_;
};

}  // namespace hapax::access
