// `hapax repair --accept-loss`: makes a store start again whose journal, marks or STORE are damaged
// below what was proven durable. Never automatic. L14: nothing is deleted: damaged and dropped
// files are renamed to quarantine-…; what was lost is written down in the journal itself; and the
// history id grows, so that those who remember a later state can tell.
//
// Everything before the first damaged fact is kept. Everything behind it is given up, intact or
// not: a fact says what follows from the facts before it, and one of those is gone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <hapax/result.h>

#include "journal/format.h"
#include "journal/snapshot_file.h"
#include "ports/entropy.h"
#include "ports/files.h"

namespace hapax::journal {

enum class RepairMode : std::uint8_t { kDryRun, kAcceptLoss };

struct RepairReport {
  bool needed = false;
  std::vector<std::string> steps;  // What is (or would be) done, one sentence each.
  Lsn lost_first;                  // Facts given up; both 0 if none are.
  Lsn lost_last;
  std::uint64_t history = 0;  // Afterwards.
};

// Makes the fact that tells of a loss. Its bytes are the caller's, as all facts are.
using GapFact = std::function<std::string(Lsn lost_first, Lsn lost_last)>;
// Whether the content of an intact file is usable, and every part it refers to; kCorruption if not.
using SnapshotCheck = std::function<Status(const SnapshotReader& reader)>;

struct RepairHooks {
  GapFact gap;
  SnapshotCheck check_snapshot;  // May be left out.
};

// The folder must be locked. kCorruption: nothing can be kept; only a backup helps. Dying in the
// middle leaves a store that still refuses to start, and repair can be run again.
Result<RepairReport> repair(ports::Folder& folder, ports::Entropy& entropy, RepairMode mode,
                            const RepairHooks& hooks);

}  // namespace hapax::journal
