#include "access/tenant_names.h"

namespace hapax::access {

TenantNames::TenantNames(const Caller& caller) : TenantNames(caller.tenant) {
  bodies_ = plain() || caller.rights.has(Right::kReadBodies);
}

bool TenantNames::is_ours(std::string_view name) const {
  return frame_.empty() ? from_outside(name) : name.starts_with(frame_);
}

std::string_view TenantNames::outside(std::string_view name) const {
  return name.starts_with(frame_) ? name.substr(frame_.size()) : name;
}

void TenantNames::keep_own(std::vector<std::string>& names) const {
  std::erase_if(names, [&](const std::string& name) { return !is_ours(name); });
  for (std::string& name : names) name.erase(0, frame_.size());
}

void TenantNames::clean(std::string& text) const {
  if (frame_.empty()) return;
  for (std::size_t at = 0; (at = text.find(frame_, at)) != std::string::npos;) {
    text.erase(at, frame_.size());
  }
}

void TenantNames::clean_names(Verdict& verdict) const {
  if (frame_.empty()) return;
  if (auto* refused = std::get_if<Refused>(&verdict)) clean(refused->error.detail);
  if (auto* received = std::get_if<Received>(&verdict)) {
    for (Delivery& delivery : received->deliveries) {
      if (delivery.record.lineage) clean(delivery.record.lineage->stream);
    }
  }
}

void TenantNames::clean(Verdict& verdict) const {
  clean_names(verdict);
  if (!bodies_) hide_result(verdict);
}

}  // namespace hapax::access
