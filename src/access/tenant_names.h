// What names mean to a tenant: its own have its frame in the store (base/tenant_frame.h) and none
// outside of it. For TenantStore and for the ways of commits; nobody else needs it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <hapax/ops.h>
#include <hapax/result.h>
#include <hapax/verdicts.h>

#include "access/caller.h"
#include "base/tenant_frame.h"

namespace hapax::access {

using base::from_outside;

class TenantNames {
 public:
  TenantNames() = default;
  explicit TenantNames(std::string_view tenant) : frame_(base::frame_for(tenant)) {}
  explicit TenantNames(const Caller& caller);

  // A name from outside as the store knows it. `keep` copies bytes to where they live long enough.
  template <class Keep>
  [[nodiscard]] std::string_view inside(std::string_view name, const Keep& keep) const {
    return frame_.empty() || name.empty() ? name : keep(frame_ + std::string(name));
  }
  [[nodiscard]] std::string inside(std::string_view name) const {
    return frame_ + std::string(name);
  }
  [[nodiscard]] bool is_ours(std::string_view name) const;
  [[nodiscard]] std::string_view outside(std::string_view name) const;
  // Leaves those that are ours, as they are known outside.
  void keep_own(std::vector<std::string>& names) const;

  [[nodiscard]] bool plain() const { return frame_.empty(); }
  void clean(std::string& text) const;  // takes the frame out of a message
  void clean_names(Verdict& verdict) const;
  // A6: What a caller is told has its tenant's own names, and stored results only with the right to
  // read bodies.
  void clean(Verdict& verdict) const;

 private:
  std::string frame_;
  bool bodies_ = true;
};

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

[[nodiscard]] inline bool all_from_outside(const Op& op) {
  bool good = true;
  const auto check = [&](std::string_view name) { good = good && from_outside(name); };
  std::visit([&](const auto& one) { detail::each_name(one, check); }, op);
  return good;
}
[[nodiscard]] inline Error bad_name(std::string_view what) {
  return {Errc::kInvalidArgument, std::string(what) + " must not begin with the byte 0x01"};
}

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

// Of a commit as a whole: its operations, its id and its transaction.
template <class AnyCommit, class Keep>
void scope_commit(AnyCommit& commit, std::span<Op> ops, const TenantNames& names,
                  const Keep& keep) {
  if (names.plain()) return;
  for (Op& op : ops) scope(op, names, keep);
  if (commit.id) commit.id = names.inside(*commit.id, keep);
  if (commit.transaction) commit.transaction->name = names.inside(commit.transaction->name, keep);
}

// The reverse: the views are of the same bytes.
inline void unscope(Op& op, const TenantNames& names) {
  if (names.plain()) return;
  std::visit(
      [&](auto& one) {
        detail::each_name(one, [&](std::string_view& name) { name = names.outside(name); });
      },
      op);
}

}  // namespace hapax::access
