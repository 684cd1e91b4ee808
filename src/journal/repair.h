// `hapax repair --accept-loss`: makes a store start again whose journal, marks or STORE are damaged
// below what was proven durable. Never automatic. L14: nothing is deleted: damaged and dropped
// files are renamed to quarantine-…; what was lost is written down in the journal itself; and the
// history id grows, so that those who remember a later state can tell.
//
// Everything before the first damaged fact is kept. Everything behind it is given up, intact or
// not: a fact says what follows from the facts before it, and one of those is gone. Of facts that a
// snapshot contains only the payloads can be lost; whoever knows what they mean says which.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <hapax/result.h>

#include "journal/format.h"
#include "journal/identity.h"
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

// Makes the fact that tells of a loss; 0, 0: only of payloads. Its bytes are the caller's, as all
// facts are.
using GapFact = std::function<std::string(Lsn lost_first, Lsn lost_last)>;
// Whether the snapshot's content is usable, and every part it refers to; kCorruption if not.
using SnapshotCheck = std::function<Status(const Identity& identity, Lsn snapshot)>;

// What a repair leaves to a start.
struct Kept {
  Identity identity;
  Lsn snapshot;                     // 0 = none
  Lsn next;                         // Facts behind the snapshot and before this one are there.
  std::set<std::uint32_t> dropped;  // Segments that go to quarantine.
};
// Payloads that what is kept refers to and that cannot be read.
struct PayloadLoss {
  std::vector<std::string> facts;  // That say so; written behind the gap.
  std::vector<std::string> steps;  // The same for people.
};
using PayloadCheck = std::function<Result<PayloadLoss>(const Kept& kept)>;

struct RepairHooks {
  GapFact gap;
  SnapshotCheck check_snapshot;  // These may be left out.
  PayloadCheck check_payloads;
};

// What a repair would do. Changes nothing at all.
Result<RepairReport> plan_repair(ports::Folder& folder, const RepairHooks& hooks);

// The folder must be locked. kCorruption: nothing can be kept; only a backup helps. Dying in the
// middle leaves a store that still refuses to start, and repair can be run again.
Result<RepairReport> repair(ports::Folder& folder, ports::Entropy& entropy, RepairMode mode,
                            const RepairHooks& hooks);

}  // namespace hapax::journal
