// Payloads that the state refers to and the disk no longer has. Found by a repair, which writes
// them down as facts; nothing is ever given up silently.
//
// G1: after a repair nothing that the state refers to is missing on disk: what could not be read is
//     gone from reads and consumers, by facts that name it, and its ids stay remembered.
#pragma once

#include <string>

#include <hapax/result.h>

#include "core/facts.h"
#include "journal/repair.h"
#include "ports/files.h"

namespace hapax::engine {

// Reads every record, result and stored answer that is still needed. kIo if the disk does not let
// us: L13, a disk that cannot be read says nothing about what is on it.
[[nodiscard]] Result<journal::PayloadLoss> find_losses(ports::Folder& folder,
                                                       const journal::Kept& kept);

// A fact as the journal keeps it, with its own checksum.
[[nodiscard]] std::string sealed_fact(const core::Fact& fact);

}  // namespace hapax::engine
