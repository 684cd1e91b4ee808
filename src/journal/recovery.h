// What happens between the start of the process and its first answer. In this order:
//   1. read marks and journal, change nothing;
//   2. damage below anything proven durable: refuse (L7), still having changed nothing;
//   3. in a folder of an older format: say in STORE that it has the present one (L19);
//   4. after an unclean end: copy a torn tail to quarantine (L8), rewrite what is unproven into a
//      new segment (L9), unless the last one is empty and proven durable (L17);
//   5. show every batch to the visitor, at the place where it is durable now;
//   6. hand out a Writer that goes on from there.
// Dying anywhere in it, and starting again, does it again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

#include "journal/examine.h"
#include "journal/format.h"
#include "journal/identity.h"
#include "journal/writer.h"
#include "ports/entropy.h"
#include "ports/files.h"

namespace hapax::journal {

struct RecoverOptions {
  Lsn snapshot;  // Facts up to here come from a snapshot; 0 = none. Only later ones are visited.
  WriterOptions writer;
  std::uint64_t reserve_bytes = std::uint64_t{1} << 20;  // Kept back for a full disk.
};

// Facts [first, next) lie in the segment of this number.
struct SegmentSpan {
  std::uint32_t number = 0;
  Lsn first;
  Lsn next;
  std::uint64_t bytes = 0;  // of its file
};

struct RecoveryReport {
  bool clean = false;                 // The last process ended in order.
  std::uint64_t batches = 0;          // Visited …
  std::uint64_t facts = 0;            // … with so many facts …
  std::uint64_t bytes = 0;            // … in so many bytes.
  std::uint64_t torn_bytes = 0;       // Not a whole batch, copied to quarantine.
  Lsn rewritten_first;                // Facts that were not proven durable and were written anew;
  Lsn rewritten_last;                 // both 0 if there were none.
  Time log_time{};                    // Of the last batch.
  Lsn next{1};                        // Of the next fact.
  Slot slot;                          // Of the next batch.
  std::vector<SegmentSpan> segments;  // All that exist; the last one is being written.
  std::vector<std::string> warnings;  // For people, one sentence each.
};

struct Recovered {
  RecoveryReport report;
  std::unique_ptr<Writer> writer;
};

// The folder must be locked. kCorruption: refused, exit code 65. kIo: the disk cannot be read or
// synced. kNoSpace: too full even for this. An error of the visitor is passed on.
Result<Recovered> recover(ports::Folder& folder, ports::Entropy& entropy, const Identity& identity,
                          const RecoverOptions& options, const BatchVisitor& visit);

}  // namespace hapax::journal
