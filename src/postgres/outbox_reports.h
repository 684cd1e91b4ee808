// What people ask of an outbox: how it stands, what became of an event, which ones were given up;
// and giving these another try. None of it needs a lease of a lane.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "postgres/outbox_session.h"
#include "relay/source.h"

namespace hapax::postgres {

[[nodiscard]] Result<relay::OutboxReport> report_outbox(OutboxSession& session);
[[nodiscard]] Result<std::vector<relay::TracedEvent>> trace_event(OutboxSession& session,
                                                                  const std::string& id);
[[nodiscard]] Result<std::vector<relay::DeadLetter>> list_dead_letters(OutboxSession& session,
                                                                       std::uint32_t most);
[[nodiscard]] Result<relay::Redriven> redrive_dead_letters(OutboxSession& session,
                                                           std::span<const std::string> ids);

}  // namespace hapax::postgres
