// Who calls: the tenant and the rights that a credential gives, and what names mean to that tenant.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/ops.h>
#include <hapax/result.h>
#include <hapax/verdicts.h>

#include "access/account.h"
#include "auth/identity.h"

namespace hapax::access {

using auth::Right;
using auth::Rights;

// Whoever calls a server without authentication.
inline constexpr std::string_view kAnybody = "anybody";

struct Caller : auth::Identity {
  std::shared_ptr<Account> account{};  // of the tenant; none: without limits

  [[nodiscard]] bool signed_in() const { return !subject.empty() && subject != kAnybody; }
};

// What holds where its requests say nothing.
[[nodiscard]] inline wire::Usual usual_of(const Caller& caller) {
  return caller.account == nullptr ? wire::Usual{} : caller.account->usual();
}

// Tenants share one store; each sees its own names only. Inside, every name of a tenant
// begins with a prefix that no name from outside can have. The tenant without a name has no prefix.
class TenantNames {
 public:
  TenantNames() = default;
  explicit TenantNames(const Caller& caller);

  // A name from outside as the store knows it. `keep` copies bytes to where they live long enough.
  template <class Keep>
  [[nodiscard]] std::string_view inside(std::string_view name, const Keep& keep) const {
    return prefix_.empty() || name.empty() ? name : keep(prefix_ + std::string(name));
  }
  [[nodiscard]] std::string inside(std::string_view name) const {
    return prefix_ + std::string(name);
  }
  // Nothing if it is another tenant's.
  [[nodiscard]] bool is_ours(std::string_view name) const;
  [[nodiscard]] std::string_view outside(std::string_view name) const;
  // Leaves those that are ours, as they are known outside.
  void keep_own(std::vector<std::string>& names) const;

  [[nodiscard]] bool plain() const { return prefix_.empty(); }
  void clean(std::string& text) const;  // takes the prefix out of a message
  // A6: What a caller is told has its tenant's own names, and stored results only with the right to
  // read bodies.
  void clean(Verdict& verdict) const;

 private:
  std::string prefix_;
  bool bodies_ = true;
};

// Whether a name may come from outside: it reaches into no tenant.
[[nodiscard]] bool from_outside(std::string_view name);

namespace detail {

template <class AnyOp, class Act>
void each_name(AnyOp& op, const Act& act) {
  if constexpr (requires { op.stream; }) act(op.stream);
  if constexpr (requires { op.scope; }) act(op.scope);
  if constexpr (requires { op.source; }) act(op.source);
  if constexpr (requires { op.transaction; }) act(op.transaction);
  if constexpr (requires { op.dead_letters; }) act(op.dead_letters);
  if constexpr (requires { op.name; }) act(op.name);
  if constexpr (requires { op.settings.dead_letters; }) act(op.settings.dead_letters);
}

}  // namespace detail

// Rewrites every name of an operation to the tenant's own.
template <class Keep>
void scope(Op& op, const TenantNames& names, const Keep& keep) {
  if (names.plain()) return;
  std::visit(
      [&](auto& one) {
        detail::each_name(one, [&](std::string_view& name) { name = names.inside(name, keep); });
      },
      op);
}

}  // namespace hapax::access
