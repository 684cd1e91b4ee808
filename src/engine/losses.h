// Payloads that the state refers to and the disk no longer has. Found by a repair, which writes
// them down as facts; nothing is ever given up silently.
//
// G1: after a repair nothing that the state refers to is missing on disk: what could not be read is
//     gone from reads and consumers, by facts that name it, and its ids stay remembered.
#pragma once

#include <optional>
#include <string>

#include <hapax/result.h>

#include "core/facts.h"
#include "core/state.h"
#include "engine/snapshotter.h"
#include "journal/repair.h"
#include "journal/verify.h"
#include "ports/files.h"

namespace hapax::engine {

// Reads every record, result and stored answer that is still needed. kIo if the disk does not let
// us: L13, a disk that cannot be read says nothing about what is on it.
[[nodiscard]] Result<journal::PayloadLoss> find_losses(ports::Folder& folder,
                                                       const journal::Kept& kept);

// A segment with payloads that `state` needs and that is missing or too short for them. Nothing is
// read but sizes.
[[nodiscard]] Result<std::optional<journal::FileProblem>> find_missing(ports::Folder& folder,
                                                                       const core::State& state,
                                                                       Time now);
// The same, of the state that a start would come to.
[[nodiscard]] Result<std::optional<journal::FileProblem>> find_missing_after_replay(
    ports::Folder& folder, const journal::Identity& identity);
// G2: what a start needs below its snapshot, where it reads nothing, is there; or what follows the
// snapshot says that it was given up. `state`: as the snapshot has it.
[[nodiscard]] Status check_below_snapshot(ports::Folder& folder, const journal::Identity& identity,
                                          const core::State& state, const LoadedSnapshot& loaded);
// What find_missing() found, for whoever wanted to start.
[[nodiscard]] Error refusal(const ports::Folder& folder, const journal::FileProblem& missing);

// A fact as the journal keeps it, with its own checksum.
[[nodiscard]] std::string sealed_fact(const core::Fact& fact);

}  // namespace hapax::engine
