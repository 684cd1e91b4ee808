#include "front/caller.h"

#include <variant>

#include "base/tenant_frame.h"

namespace hapax::front {

namespace {

using base::kTenantFrame;

struct RightOf {
  Right operator()(const Receive&) const { return Right::kConsume; }
  Right operator()(const Ack&) const { return Right::kConsume; }
  Right operator()(const Nack&) const { return Right::kConsume; }
  Right operator()(const Extend&) const { return Right::kConsume; }
  Right operator()(const Get&) const { return Right::kConsume; }
  Right operator()(const Unset&) const { return Right::kProduce; }
  Right operator()(const Expire&) const { return Right::kProduce; }
  Right operator()(const Add&) const { return Right::kProduce; }
  Right operator()(const OpenProducer&) const { return Right::kProduce; }
  Right operator()(const Append&) const { return Right::kProduce; }
  Right operator()(const Claim&) const { return Right::kProduce; }
  Right operator()(const Renew&) const { return Right::kProduce; }
  Right operator()(const Settle&) const { return Right::kProduce; }
  Right operator()(const Advance&) const { return Right::kProduce; }
  Right operator()(const Set&) const { return Right::kProduce; }
  Right operator()(const Begin&) const { return Right::kProduce; }
  Right operator()(const End&) const { return Right::kProduce; }
  template <class Other>
  Right operator()(const Other&) const {
    return Right::kAdmin;
  }
};

}  // namespace

std::string_view word_of(Right right) {
  switch (right) {
    case Right::kProduce:
      return "produce";
    case Right::kConsume:
      return "consume";
    case Right::kAdmin:
      return "admin";
    case Right::kReadBodies:
      return "read-bodies";
  }
  return "";
}

Status check_right(const Caller& caller, Right right) {
  if (caller.rights.has(right)) return Ok{};
  return Error{Errc::kForbidden,
               "'" + caller.subject + "' has no right to " + std::string(word_of(right)) +
                   "; ask for a credential with the role '" + std::string(word_of(right)) + "'"};
}

Right right_of(const Op& op) { return std::visit(RightOf{}, op); }

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

Status check_names(const Op& op) {
  bool good = true;
  const auto check = [&](std::string_view name) { good = good && from_outside(name); };
  std::visit([&](const auto& one) { detail::each_name(one, check); }, op);
  if (good) return Ok{};
  return Error{Errc::kInvalidArgument, "a name must not begin with the byte 0x01"};
}

}  // namespace hapax::front
