// What people ask of an outbox in an SQLite file: how it stands, what became of an event, which
// ones were given up; and giving these another try. None of it needs the lease of the lane.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "relay/source.h"
#include "sqlite/outbox_file.h"

namespace hapax::sqlite {

[[nodiscard]] Result<relay::OutboxReport> report_outbox(OutboxFile& file);
[[nodiscard]] Result<std::vector<relay::TracedEvent>> trace_event(OutboxFile& file,
                                                                  const std::string& id);
[[nodiscard]] Result<std::vector<relay::DeadLetter>> list_dead_letters(OutboxFile& file,
                                                                       std::uint32_t most);
[[nodiscard]] Result<relay::Redriven> redrive_dead_letters(OutboxFile& file,
                                                           std::span<const std::string> ids);

}  // namespace hapax::sqlite
