#include "access/caller.h"

#include <variant>

#include "base/tenant_frame.h"

namespace hapax::access {

using base::kTenantFrame;

TenantNames::TenantNames(const Caller& caller) {
  if (caller.tenant.empty()) return;
  prefix_ = kTenantFrame + caller.tenant + kTenantFrame;
  bodies_ = caller.rights.has(Right::kReadBodies);
}

bool TenantNames::is_ours(std::string_view name) const {
  return prefix_.empty() ? !name.starts_with(kTenantFrame) : name.starts_with(prefix_);
}

std::string_view TenantNames::outside(std::string_view name) const {
  return name.starts_with(prefix_) ? name.substr(prefix_.size()) : name;
}

void TenantNames::keep_own(std::vector<std::string>& names) const {
  std::erase_if(names, [&](const std::string& name) { return !is_ours(name); });
  for (std::string& name : names) name.erase(0, prefix_.size());
}

bool from_outside(std::string_view name) { return !name.starts_with(kTenantFrame); }

void TenantNames::clean(std::string& text) const {
  if (prefix_.empty()) return;
  for (std::size_t at = 0; (at = text.find(prefix_, at)) != std::string::npos;) {
    text.erase(at, prefix_.size());
  }
}

void TenantNames::clean(Verdict& verdict) const {
  if (prefix_.empty()) return;
  if (auto* refused = std::get_if<Refused>(&verdict)) clean(refused->error.detail);
  // A6: stored results only with the right to read bodies.
  if (auto* settled = std::get_if<DuplicateClaim>(&verdict); settled != nullptr && !bodies_) {
    settled->hidden = settled->hidden || settled->result || settled->left_out;
    settled->result.reset();
    settled->left_out = false;
  }
  if (auto* received = std::get_if<Received>(&verdict)) {
    for (Delivery& delivery : received->deliveries) {
      if (delivery.record.lineage) clean(delivery.record.lineage->stream);
    }
  }
}

}  // namespace hapax::access
