// Whether a connection keeps its server process, which a pooler may change between transactions.
#pragma once

#include <string>

#include "postgres/connection.h"

namespace hapax::postgres {

// For who needs a session: prepared statements, locks and settings that outlive a transaction.
// kInvalidArgument with the remedy, if transactions of `connection`, made to `uri`, run in
// different sessions. Leaves nothing behind in any of them.
[[nodiscard]] Status check_keeps_session(Connection& connection, const std::string& uri,
                                         const Notice& notice = {});

}  // namespace hapax::postgres
