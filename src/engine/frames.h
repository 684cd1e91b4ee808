// Facts as they lie in the journal: varint length, encoded fact, CRC32C of it. The batch's checksum
// proves them at a start; this one proves a single fact whenever it is read, before it leaves.
#pragma once

#include <string>
#include <string_view>

#include <hapax/result.h>
#include <hapax/verdicts.h>

#include "base/where.h"
#include "core/facts.h"
#include "core/state.h"
#include "journal/batch.h"
#include "ports/files.h"

namespace hapax::engine {

// Adds the fact to the batch; the answer is where in the batch its frame lies.
struct FrameSpan {
  std::uint32_t offset = 0;  // from the batch's start
  std::uint32_t length = 0;
};
FrameSpan write_frame(journal::Batch& batch, const core::Fact& fact);
// No frame of this fact is larger.
[[nodiscard]] std::size_t frame_bytes_max(const core::Fact& fact);

// Takes the first frame off `rest` and answers its fact without the checksum, which held.
[[nodiscard]] Result<std::string_view> take_frame(std::string_view& rest);

// A fact that was handed over without its frame (replay): checks and cuts the checksum.
[[nodiscard]] Result<std::string_view> checked_fact(std::string_view bytes);

[[nodiscard]] Result<std::string> read_span(const ports::File& file, base::Where where);

// The fact of the record at `index` of a run, from the bytes of the whole run.
[[nodiscard]] Result<std::string_view> record_in_run(std::string_view run, std::uint64_t index);

[[nodiscard]] Result<Record> to_record(std::string_view fact, Time time);
// What a completed claim left in the journal.
struct SettledResult {
  std::string owner;  // empty: there was none, or format 1 did not keep it
  StoredResult result;
};
[[nodiscard]] Result<SettledResult> to_result(std::string_view fact);

}  // namespace hapax::engine
