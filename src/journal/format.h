// The journal as bytes: segment header, batch header, and where the next batch goes. Pure: no file
// is touched here. docs/internals/journal-format.md has the same tables for people; a change of any
// offset is a new format version. All integers are little-endian.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string_view>

#include <hapax/ids.h>
#include <hapax/result.h>
#include <hapax/time.h>

#include "journal/block.h"

namespace hapax::journal {

using Lsn = Number<struct LsnTag>;  // Number of a fact, counted from 1 over the store's life.

inline constexpr std::uint32_t kHeaderBytes = 64;  // of a segment, and of a batch
inline constexpr std::uint32_t kBatchAlignment = 8;
inline constexpr std::uint32_t kChecksumBytes = 4;
inline constexpr std::uint32_t kBatchBytesMax = std::uint32_t{64} << 20;  // of payload
inline constexpr std::uint32_t kSegmentBytesMin = 256;
inline constexpr std::uint32_t kSegmentBytesMax = std::uint32_t{1} << 30;
inline constexpr std::string_view kSegmentMagic = "HAPAXSEG";
inline constexpr std::string_view kBatchMagic = "HXB1";

// Place of a batch: the segment's number, and the offset of the batch's header in its file.
struct Slot {
  std::uint32_t segment = 0;
  std::uint32_t offset = 0;
  friend constexpr auto operator<=>(const Slot&, const Slot&) = default;
};

// Bytes on disk of a batch with this payload: header, payload, checksum, zeros up to the alignment.
[[nodiscard]] constexpr std::uint32_t sealed_bytes(std::uint32_t payload) {
  const std::uint32_t bare = kHeaderBytes + payload + kChecksumBytes;
  return (bare + kBatchAlignment - 1) / kBatchAlignment * kBatchAlignment;
}

// A function of sizes alone, so that the next batch can be built while this one is being written.
[[nodiscard]] constexpr Slot slot_after(Slot at, std::uint32_t batch_bytes,
                                        std::uint32_t segment_bytes) {
  const std::uint32_t end = at.offset + batch_bytes;
  if (end < segment_bytes) return {at.segment, end};
  return {at.segment + 1, kHeaderBytes};
}

// A batch starts below the largest segment_bytes, so its end is within the range of an offset.
static_assert(std::uint64_t{kSegmentBytesMax} + sealed_bytes(kBatchBytesMax) <= 0xffffffffULL);

// Segment header, 64 bytes:
//    0  8  magic "HAPAXSEG"
//    8  2  format version
//   10  2  flags
//   12  4  segment number
//   16  8  salt, random per segment
//   24  8  first lsn; whatever the segment before holds from there on is superseded
//   32  8  history id
//   40  8  first half of the store id
//   48  4  checksum of the batch before the first lsn; 0 if there is none
//   52  8  zeros
//   60  4  CRC-32C of bytes 0 to 59
struct SegmentHeader {
  static constexpr std::uint16_t kAfterLoss = 1;  // Begun by repair; facts before it are lost.

  std::uint16_t flags = 0;
  std::uint32_t number = 0;
  std::uint64_t salt = 0;
  Lsn first{1};
  std::uint64_t history = 0;
  std::uint64_t store = 0;
  std::uint32_t chain = 0;
  std::uint16_t version = kFormatVersion;
  friend bool operator==(const SegmentHeader&, const SegmentHeader&) = default;
};

// Batch header, 64 bytes, at a multiple of 8:
//    0  4  magic "HXB1"
//    4  2  format version
//    6  2  flags
//    8  8  salt of the segment
//   16  8  first lsn
//   24  4  count of facts
//   28  4  payload length
//   32  8  durable lsn: everything up to it was synced before this batch was written
//   40  8  log time, ms since 1970
//   48  4  checksum of the batch before (the chain)
//   52  8  zeros
//   60  4  CRC-32C of bytes 0 to 59
// Then the payload, its CRC-32C continued from the header's, zeros up to a multiple of 8. The
// payload's CRC is the batch's checksum: it covers the header too.
struct BatchHeader {
  static constexpr std::uint16_t kRewritten = 1;  // By a recovery, from an older segment.
  static constexpr std::uint16_t kGap = 2;        // By repair; its fact names what was lost.

  std::uint16_t flags = 0;
  std::uint64_t salt = 0;
  Lsn first{1};
  std::uint32_t count = 0;
  std::uint32_t payload = 0;
  Lsn durable;
  Time log_time{};
  std::uint32_t chain = 0;
  std::uint16_t version = kFormatVersion;

  [[nodiscard]] constexpr Lsn last() const { return Lsn{first.value + count - 1}; }
  [[nodiscard]] constexpr Lsn next() const { return Lsn{first.value + count}; }
  friend bool operator==(const BatchHeader&, const BatchHeader&) = default;
};

using HeaderBytes = std::array<char, kHeaderBytes>;

[[nodiscard]] HeaderBytes encode(const SegmentHeader& header);
[[nodiscard]] HeaderBytes encode(const BatchHeader& header);

// kCorruption with the reason, or kFormatVersion. Too few bytes are a reason, too.
[[nodiscard]] Result<SegmentHeader> decode_segment_header(std::string_view bytes);
[[nodiscard]] Result<BatchHeader> decode_batch_header(std::string_view bytes);

}  // namespace hapax::journal
