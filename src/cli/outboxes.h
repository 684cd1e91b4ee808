// Outboxes of databases, by their addresses.
#pragma once

#include <hapax/result.h>

#include "relay/open_outbox.h"

namespace hapax::cli {

// kInvalidArgument: the address is of no database that we know.
[[nodiscard]] Result<relay::OpenedOutbox> open_outbox(const relay::OutboxAddress& address);

}  // namespace hapax::cli
