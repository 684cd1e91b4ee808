// Snapshots and their parts as files: a header, sections, a footer. What the sections mean is not
// known here. A snapshot is named after the last lsn it contains; a part is an immutable piece that
// several snapshots refer to, named by a number its maker chose.
//
// L15: a file bears its name only when it is whole and synced, and no section is handed out before
// the whole file was verified.
//
// Header, 64 bytes:                        Section header, 32 bytes, at a multiple of 8:
//    0  8  magic "HAPAXSNP"                   0  4  magic "HXS1"
//    8  2  format version                     4  2  format version
//   10  2  kind: 1 snapshot, 2 part           6  2  zeros
//   12  4  zeros                              8  4  tag
//   16 16  store id                          12  4  index, counted from 0
//   32  8  history id                        16  8  length
//   40  8  number                            24  4  chain: checksum of what is before it
//   48  8  log time, ms since 1970           28  4  CRC-32C of bytes 0 to 27
//   56  4  zeros                           Then the bytes, their CRC-32C continued from the
//   60  4  CRC-32C of bytes 0 to 59        header's (the section's checksum), zeros up to 8.
//
// Footer, 32 bytes, the end of the file:
//    0  4  magic "HXF1"                      12  4  chain: checksum of the last section
//    4  2  format version                    16  8  size of the whole file
//    6  2  zeros                             24  4  zeros
//    8  4  count of sections                 28  4  CRC-32C of bytes 0 to 27
// The chain begins with the header's CRC, so the last checksum covers the whole file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

#include "journal/file_window.h"
#include "journal/format.h"
#include "journal/identity.h"
#include "journal/new_file.h"
#include "ports/files.h"

namespace hapax::journal {

inline constexpr std::uint64_t kSectionBytesMax = std::uint64_t{1} << 30;
inline constexpr std::uint32_t kSectionsMax = 1'000'000;

enum class SnapshotKind : std::uint16_t { kSnapshot = 1, kPart = 2 };

struct SnapshotHeader {
  SnapshotKind kind = SnapshotKind::kSnapshot;
  std::array<char, 16> store_id{};
  std::uint64_t history = 0;
  std::uint64_t number = 0;  // lsn of a snapshot
  Time log_time{};
  std::uint16_t version = kFormatVersion;
  friend bool operator==(const SnapshotHeader&, const SnapshotHeader&) = default;
};

[[nodiscard]] std::string file_name(SnapshotKind kind, std::uint64_t number);

// Writes one file from front to back. Syncs as it goes, so that the last sync is short and the
// journal's syncs in between are, too.
class SnapshotWriter {
 public:
  // Replaces a file of the same name, when it is finished.
  static Result<SnapshotWriter> create(ports::Folder& folder, const SnapshotHeader& header);

  Status add(std::uint32_t tag, std::string_view bytes);
  // L4: when this answers Ok, the file and its name are durable.
  Status finish();

 private:
  SnapshotWriter(ports::Folder& folder, NewFile file) : folder_(&folder), file_(std::move(file)) {}
  Status put_bytes(std::string_view bytes);
  Status flush();

  ports::Folder* folder_;
  NewFile file_;
  std::string pending_;  // Not yet given to the file.
  std::uint64_t size_ = 0;
  std::uint64_t synced_ = 0;
  std::uint32_t chain_ = 0;
  std::uint32_t sections_ = 0;
};

struct SnapshotSection {
  std::uint32_t tag = 0;
  std::uint64_t offset = 0;  // of its bytes
  std::uint64_t length = 0;
  std::uint32_t header_crc = 0;
  std::uint32_t checksum = 0;
};

class SnapshotReader {
 public:
  // kNotFound; kFormatVersion; kCorruption with file, offset and reason: then an older snapshot and
  // the journal since then still tell everything.
  static Result<SnapshotReader> open(ports::Folder& folder, const Identity& identity,
                                     SnapshotKind kind, std::uint64_t number);

  [[nodiscard]] const SnapshotHeader& header() const { return header_; }
  [[nodiscard]] std::uint64_t size() const { return window_.size(); }
  [[nodiscard]] const std::vector<SnapshotSection>& sections() const { return sections_; }
  // Verified once more: the disk may have changed its mind.
  Result<std::string> read(const SnapshotSection& section) const;

 private:
  SnapshotReader(std::string path, FileWindow window)
      : path_(std::move(path)), window_(std::move(window)) {}
  Status verify(const Identity& identity, SnapshotKind kind, std::uint64_t number);
  Result<std::uint32_t> verify_header(const Identity& identity, SnapshotKind kind,
                                      std::uint64_t number);
  Result<SnapshotSection> verify_section(std::uint64_t offset, std::uint32_t chain);
  Status verify_footer(std::uint64_t offset, std::uint32_t chain);
  [[nodiscard]] Error invalid(std::uint64_t offset, const std::string& why) const;

  std::string path_;
  FileWindow window_;
  SnapshotHeader header_;
  std::vector<SnapshotSection> sections_;
};

struct SnapshotFiles {
  std::vector<Lsn> snapshots;        // newest first
  std::vector<std::uint64_t> parts;  // by number
};
Result<SnapshotFiles> list_snapshots(ports::Folder& folder);

// The two newest valid snapshots are kept: call this with the older one's lsn, after the newer one
// was finished.
Status remove_snapshots_below(ports::Folder& folder, Lsn oldest_kept);
// `referenced`: by any snapshot that is kept, or being written.
Status remove_parts_except(ports::Folder& folder, std::span<const std::uint64_t> referenced);

}  // namespace hapax::journal
