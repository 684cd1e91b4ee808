// A second reader of the journal, for the judges: it shares no code with the store and believes
// nothing but the format as docs/internals/journal-format.md gives it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sim/checks.h"
#include "sim/disk.h"

namespace hapax::sim {

struct JournalDump {
  std::uint64_t next_lsn = 0;
  std::uint64_t batches = 0;
  std::uint64_t moves = 0;     // records and results copied so that their segment could go
  std::uint64_t segments = 0;  // that are there …
  std::uint64_t newest = 0;    // … and the number of the last one
  // What a record holds, by its sequence: streams are not told apart.
  std::set<std::pair<std::uint64_t, std::string>> records;
  std::string trouble;  // empty: every byte is as it should be
};

[[nodiscard]] JournalDump dump_journal(const SimDisk& disk);

// Whether the files of a store at rest say the same as the store itself.
[[nodiscard]] Judgement check_dump(const JournalDump& dump, const Contents& contents);

}  // namespace hapax::sim
