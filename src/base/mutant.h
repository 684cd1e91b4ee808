// Planted bugs. A build with HAPAX_MUTANTS contains, at the places named here, the bug that another
// system shipped (docs/internals/invariants.md and the museum of the simulation say which); the
// simulation switches one on and must find it. In every other build mutant() is a constant false
// and nothing of this is left.
//
// All objects of one program must be built with the same setting of HAPAX_MUTANTS.
#pragma once

#include <cstdint>

namespace hapax::base {

enum class Mutant : std::uint8_t {
  kNone,
  // The journal.
  kAckBeforeSync,             // M10: Durable is minted without a sync.
  kRetrySync,                 // A failed sync is tried again and then believed.
  kNoDirectorySync,           // M11: new names are used before the folder is synced.
  kTruncateAtFirstBad,        // Damage below proven data passes for a torn tail.
  kRefuseValidAfterInvalid,   // M12: three batches in flight; valid after invalid is refused.
  kNoRollbackOfPartialWrite,  // A batch refused for lack of space leaves its bytes behind.
  kTailNotResynced,           // The recovered tail is served as it was found.
  kTailOnlySynced,            // The recovered tail is synced again, but not rewritten.
  kTrustLength,               // M13: a length is used before its checksum.
  kDeleteNotUnderstood,       // M14: a file that cannot be read is "orphaned" and removed.
  kSeveralBatchesInFlight,    // M12: only every third batch is synced, all are acknowledged.
  // The engine and the core.
  kIdBeforePersist,       // M1: the id is remembered before its batch is durable.
  kRepeatBeforeDurable,   // A repeat is answered while what it repeats can still be lost.
  kDropBatchOnDuplicate,  // M2: one duplicate drops the new records beside it.
  kKeyOnlyDuplicate,      // Same id, other content is answered as a duplicate.
  kPruneOneSided,         // M3: ids expire in memory, without a fact in the journal.
  kIdsDieWithRecords,     // M4: trimming a stream forgets its ids.
  kUncertainSticks,       // M5: an open claim outlives its lease for ever.
  kWindowRefreshed,       // M6: a repetition extends a window that counts from the first.
  kStaleCursor,           // M7: an acknowledged record is handed out again after a restart.
  kEpochIsIdentity,       // M8: a retry under a new epoch is taken as new.
  kOpenedNotRaised,       // An opened epoch fences nobody before its writer has written.
  kLateEndCommits,        // M9: a delayed end finishes a later transaction.
  kCursorNotAtomic,       // A position moves in another batch than its effect.
  kAbsentOverwrites,      // "Set if absent" replaces a register that is about to go.
  kExpiryNotReplayed,     // A register's new expiry is forgotten by a restart.
  kRedriveReachesAll,     // A dead letter that is put back is handed to those who acked it.
  kLapseTakenOver,        // A claim that lapsed is handed out although its outcome is unknown then.
  // Log time.
  kStartBelievesWall,  // A start sets log time to the wall clock: ids are forgotten early.
  kStopIsAJump,        // A long stop is taken for a jump of the clock, and a person is wanted.
  kTimeNotNoted,       // Something is told to be over by a log time that is written down nowhere.
  kIdleNotMarked,      // While nothing is written, log time is not written down either.
  kAbsoluteIsLogTime,  // A caller's absolute time is taken for log time, which lags behind it.
};

#ifdef HAPAX_MUTANTS
inline thread_local Mutant planted_mutant = Mutant::kNone;
[[nodiscard]] inline bool mutant(Mutant which) { return planted_mutant == which; }
#else
[[nodiscard]] constexpr bool mutant(Mutant /*which*/) { return false; }
#endif

}  // namespace hapax::base
