// The audit of a tenant: its stream "$audit", with a record for every administrative act.
#pragma once

#include <string>
#include <string_view>

#include <hapax/ops.h>

#include "access/caller.h"

namespace hapax::access {

inline constexpr std::string_view kAuditStream = "$audit";

// Acts of administration are audited; on a server without tenants the store keeps its own audit.
[[nodiscard]] bool is_audited(const Caller& caller, const Op& op);

// {"act":"delete_stream","subject":"orders","actor":"billing"}, in names from outside: to be made
// before the operation's names are rewritten.
[[nodiscard]] std::string audit_line(const Caller& caller, const Op& op);

// "append", "claim" …
[[nodiscard]] std::string_view name_of(const Op& op);

}  // namespace hapax::access
