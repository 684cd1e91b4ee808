// Writing batches anew into another segment: same facts, same lsns, other salt and chain. Recovery
// does it with what is not proven durable; repair, too, when it begins a segment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hapax/result.h>

#include "journal/examine.h"
#include "journal/identity.h"
#include "journal/segment.h"
#include "ports/files.h"

namespace hapax::journal {

// Batches that may not be on disk although their file shows them.
std::vector<TailBatch> unproven_batches(const JournalFindings& findings, const Evidence& evidence);

struct Rewritten {
  std::string bytes;        // To stand behind the header of the new segment.
  std::uint32_t chain = 0;  // Of the next batch.
};
// `into` begins with the first of these batches, and with its chain.
Result<Rewritten> reseal(ports::Folder& folder, const Identity& identity,
                         const std::vector<TailBatch>& batches, const SegmentHeader& into);

}  // namespace hapax::journal
