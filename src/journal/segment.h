// One segment's file: made, and read batch by batch. Reading judges nothing: what is not a valid
// batch is kCorruption with the reason, and the caller knows what that means where it stands.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>

#include "base/where.h"
#include "journal/file_window.h"
#include "journal/format.h"
#include "journal/identity.h"
#include "ports/files.h"

namespace hapax::journal {

// A valid batch where it lies. The payload is valid until the reader is used again.
struct BatchView {
  BatchHeader header;
  std::string_view payload;
  Slot slot;
  std::uint32_t bytes = 0;     // on disk
  std::uint32_t checksum = 0;  // the next batch's chain
};

// What the bytes of one batch say, all of them checked; the salt is the caller's to judge.
Result<BatchView> view_batch(std::string_view bytes, Slot slot);

// Calls `visit` for each fact of the batch, in order. kCorruption if the payload is not exactly
// `count` facts: then some program wrote nonsense with a valid checksum.
using FactVisitor = std::function<Status(Lsn lsn, base::Where where, std::string_view fact)>;
Status for_each_fact(const BatchView& batch, const FactVisitor& visit);

// Makes the segment's file, with `batches` (already sealed) behind its header. L4: when it answers
// Ok, the file and its name are durable.
Result<std::unique_ptr<ports::File>> create_segment(ports::Folder& folder,
                                                    const SegmentHeader& header,
                                                    std::string_view batches);

class SegmentReader {
 public:
  // kCorruption if the header is not intact or does not belong to this store and number.
  static Result<SegmentReader> open(ports::Folder& folder, const Identity& identity,
                                    std::uint32_t number);

  [[nodiscard]] const SegmentHeader& header() const { return header_; }
  [[nodiscard]] std::uint64_t size() const { return window_.size(); }
  [[nodiscard]] const ports::File& file() const { return window_.file(); }

  struct Expected {
    Lsn first;
    std::uint32_t chain = 0;
  };
  // The batch at `offset`. kCorruption: there is none that follows what is expected.
  Result<BatchView> read(std::uint64_t offset, const Expected& expected);
  // The same for a batch of which only the place is known, for verify.
  Result<BatchView> read_any(std::uint64_t offset);

  // The next intact header of a batch of this segment at `from` or behind it.
  struct Found {
    std::uint64_t offset = 0;
    BatchHeader header;
  };
  Result<std::optional<Found>> find_header(std::uint64_t from);

  Result<std::uint64_t> end_of_content(std::uint64_t from) { return window_.end_of_content(from); }

 private:
  SegmentReader(FileWindow window, const SegmentHeader& header)
      : window_(std::move(window)), header_(header) {}
  Result<BatchHeader> read_header(std::uint64_t offset);
  Result<BatchView> read_batch(std::uint64_t offset, const BatchHeader& header);

  FileWindow window_;
  SegmentHeader header_;
};

// All segments of the folder by number; those whose header cannot be read with the reason.
struct Segment {
  std::uint32_t number = 0;
  std::uint64_t size = 0;
  Result<SegmentHeader> header = SegmentHeader{};
};
Result<std::vector<Segment>> list_segments(ports::Folder& folder, const Identity& identity);

}  // namespace hapax::journal
