// Durable marks: the file MARKS, the only one that is overwritten in place. L11: a mark is true
// when it is written: everything up to its lsn is durable. So it is evidence, whoever survived to
// read it, and losing one loses evidence but never data.
//
// Two blocks of 4 KiB, written alternately and synced each time, so one is always intact: if
// neither is, the disk is damaged.
//
// Block, 64 bytes, the rest of the 4 KiB zeros:
//    0  4  magic "HXM1"            24  8  salt of the segment
//    4  2  format version          32  4  segment number
//    6  2  flags                   36  4  end: offset behind the last batch in that segment
//    8  8  counter                 40  8  log time, ms since 1970
//   16  8  durable lsn             48  4  size of that segment's file, at least; 0 = not known
//                                  52  8  zeros
//                                  60  4  CRC-32C of bytes 0 to 59
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <hapax/result.h>
#include <hapax/time.h>

#include "journal/format.h"
#include "ports/files.h"

namespace hapax::journal {

inline constexpr std::uint64_t kMarkBlockBytes = 4096;

enum class MarkKind : std::uint8_t {
  kRunning,
  kClean,  // The process ended in order: nothing was under way.
};

struct Mark {
  MarkKind kind = MarkKind::kRunning;
  std::uint64_t counter = 0;  // Given by Marks; the higher one is the newer one.
  Lsn durable;
  std::uint64_t salt = 0;
  Slot end;
  Time log_time{};
  std::uint32_t file_bytes = 0;  // The segment's file has at least so many; 0 = not known.
  std::uint16_t version = kFormatVersion;  // Read; Marks writes the present one.
  friend bool operator==(const Mark&, const Mark&) = default;
};

[[nodiscard]] HeaderBytes encode(const Mark& mark);
[[nodiscard]] Result<Mark> decode_mark(std::string_view bytes);

class Marks {
 public:
  // Replaces the file by one with this mark in both blocks; durable after the folder's next sync.
  static Result<Marks> create(ports::Folder& folder, const Mark& mark);
  // Reads only. kCorruption if the file is missing or neither block is intact.
  static Result<Marks> open(ports::Folder& folder);

  [[nodiscard]] const Mark& newest() const { return *blocks_[newest_]; }
  [[nodiscard]] std::optional<Mark> block(std::size_t index) const { return blocks_[index]; }

  // Once per start, before the first write(): see marks.cc.
  Status settle();
  // Writes and syncs. A failed sync is kIo; kNoSpace leaves the older mark in force.
  Status write(Mark mark);

 private:
  explicit Marks(std::unique_ptr<ports::File> file) : file_(std::move(file)) {}
  Status put_block(std::size_t index, const Mark& mark);

  std::unique_ptr<ports::File> file_;
  std::array<std::optional<Mark>, 2> blocks_;
  std::size_t newest_ = 0;
};

}  // namespace hapax::journal
