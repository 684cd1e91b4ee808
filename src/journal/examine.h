// Reading a journal without changing anything, and judging what was read. Recovery, repair and
// verify all start here, so that they cannot disagree about what is damaged.
//
// L12: from the first segment that is read on, the facts must be without a hole: each segment
// begins with the lsn and the chain at which the one before it ends. Numbers may be missing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

#include "journal/identity.h"
#include "journal/marks.h"
#include "journal/segment.h"
#include "ports/files.h"

namespace hapax::journal {

// A batch that no later batch proves durable.
struct TailBatch {
  BatchHeader header;
  Slot slot;
  std::uint32_t bytes = 0;
};

// A place where what was proven durable cannot be read.
struct Damage {
  std::string file;
  std::uint64_t offset = 0;
  Lsn first;  // Facts from here on …
  Lsn last;   // … to at least here are concerned.
  std::string why;
  std::string proof;  // That they were durable.
};

// What lies behind the last valid batch of the last segment.
struct Rest {
  std::uint64_t end = 0;  // Behind its last byte that is not zero; the stop's offset if all are.
  std::string why;        // Why there is no valid batch at the stop.
  std::optional<SegmentReader::Found> later;  // The intact header with the highest durable lsn.
};

struct JournalFindings {
  std::vector<Segment> segments;
  std::uint32_t first_segment = 0;  // The first that was read batch by batch.
  std::vector<Damage> unreadable;   // Segments before it whose header is damaged.
  std::optional<Damage> damage;     // Reading ended there; otherwise at the end of the journal.

  // Where the valid part ends.
  Lsn next{1};
  Slot stop;
  std::uint64_t salt = 0;
  std::uint32_t chain = 0;
  Time log_time{};
  std::vector<TailBatch> tail;
  Rest rest;
};

using BatchVisitor = std::function<Status(const BatchView& batch)>;

// Reads from the segment that holds `from` to the end, and shows each batch that ends at or behind
// `from` to the visitor, if there is one. kIo if the disk does not let us.
Result<JournalFindings> examine(ports::Folder& folder, const Identity& identity, Lsn from,
                                const BatchVisitor& visit = {});

struct Evidence {
  std::optional<Mark> mark;  // The newest; repair may have to work without.
  Lsn snapshot;              // Of the newest snapshot; 0 if there is none.
};

// L7: what was proven durable and cannot be read is damage, never a torn tail. Without damage the
// journal ends at findings.stop, and nothing proves that what lies behind it was acknowledged.
std::optional<Damage> judge(const JournalFindings& findings, const Evidence& evidence);

// The highest lsn that is known to have been durable when the process ended.
Lsn proven(const JournalFindings& findings, const Evidence& evidence);

// Whether the process ended in order and nothing was written since.
bool ended_clean(const JournalFindings& findings, const Evidence& evidence);

// Whether the last segment holds nothing and is proven durable itself: a mark that names its salt
// was written behind its sync. Nothing was ever acknowledged from it, so it can be gone on with.
bool is_empty_and_proven(const JournalFindings& findings, const Evidence& evidence);

// Whether the last segment's file was cut, as far as that can be told: it ends with its last batch,
// or inside one, and a mark says that it was longer. What to say about it, or "".
std::string cut_text(const JournalFindings& findings, const Evidence& evidence);

// What to say about bytes at the end that are not a whole batch.
std::string torn_text(const JournalFindings& findings, const Evidence& evidence);

// The error a start is refused with: place, range, what is intact, what to do.
Error refusal(const ports::Folder& folder, const Damage& damage);

}  // namespace hapax::journal
