#include "journal/snapshot_file.h"

#include <algorithm>

#include "base/assert.h"
#include "base/format.h"
#include "digest/crc32c.h"
#include "journal/block.h"
#include "journal/names.h"

namespace hapax::journal {
namespace {

constexpr std::string_view kFileMagic = "HAPAXSNP";
constexpr std::string_view kSectionMagic = "HXS1";
constexpr std::string_view kFooterMagic = "HXF1";
constexpr std::size_t kFrameBytes = 32;  // of a section's header, and of the footer
constexpr std::size_t kPendingMax = std::size_t{1} << 20;
constexpr std::uint64_t kSyncEvery = std::uint64_t{8} << 20;

using FrameBytes = std::array<char, kFrameBytes>;

template <std::size_t size>
std::string_view view_of(const std::array<char, size>& bytes) {
  return {bytes.data(), bytes.size()};
}

// Checksum and zeros behind a section's bytes.
std::size_t trailer_bytes(std::uint64_t length) {
  return kChecksumBytes + static_cast<std::size_t>((8 - (length + kChecksumBytes) % 8) % 8);
}

HeaderBytes encode(const SnapshotHeader& header) {
  HeaderBytes bytes{};
  put(bytes, 10, header.kind);
  std::copy(header.store_id.begin(), header.store_id.end(), bytes.begin() + 16);
  put(bytes, 32, header.history);
  put(bytes, 40, header.number);
  put(bytes, 48, to_ms(header.log_time));
  close_block(bytes, kFileMagic, header.version);
  return bytes;
}

Result<SnapshotHeader> decode_snapshot_header(std::string_view bytes) {
  HAPAX_CHECK(check_block(bytes, kFileMagic, kHeaderBytes));
  SnapshotHeader header;
  header.version = version_of(bytes, kFileMagic);
  header.kind = get<SnapshotKind>(bytes, 10);
  bytes.copy(header.store_id.data(), header.store_id.size(), 16);
  header.history = get<std::uint64_t>(bytes, 32);
  header.number = get<std::uint64_t>(bytes, 40);
  header.log_time = time_from_ms(get<std::int64_t>(bytes, 48));
  return header;
}

FrameBytes section_frame(std::uint32_t tag, std::uint32_t index, std::uint64_t length,
                         std::uint32_t chain) {
  FrameBytes bytes{};
  put(bytes, 8, tag);
  put(bytes, 12, index);
  put(bytes, 16, length);
  put(bytes, 24, chain);
  close_block(bytes, kSectionMagic);
  return bytes;
}

FrameBytes footer_frame(std::uint32_t sections, std::uint32_t chain, std::uint64_t size,
                        std::uint16_t version = kFormatVersion) {
  FrameBytes bytes{};
  put(bytes, 8, sections);
  put(bytes, 12, chain);
  put(bytes, 16, size);
  close_block(bytes, kFooterMagic, version);
  return bytes;
}

Status remove_all(ports::Folder& folder, const std::vector<std::string>& names) {
  if (names.empty()) return Ok{};
  for (const std::string& name : names) HAPAX_CHECK(folder.remove(name));
  return sync_names(folder);
}

}  // namespace

std::string file_name(SnapshotKind kind, std::uint64_t number) {
  return kind == SnapshotKind::kSnapshot ? snapshot_name(number) : part_name(number);
}

Result<SnapshotWriter> SnapshotWriter::create(ports::Folder& folder, const SnapshotHeader& header) {
  HAPAX_TRY(NewFile file, NewFile::create(folder, file_name(header.kind, header.number)));
  SnapshotWriter writer(folder, std::move(file));
  const HeaderBytes front = encode(header);
  writer.chain_ = crc_of(view_of(front));
  HAPAX_CHECK(writer.put_bytes(view_of(front)));
  return writer;
}

Status SnapshotWriter::add(std::uint32_t tag, std::string_view bytes) {
  HAPAX_ASSERT(bytes.size() <= kSectionBytesMax, "a section keeps within its limit");
  HAPAX_ASSERT(sections_ < kSectionsMax, "a snapshot has a limited number of sections");
  const FrameBytes frame = section_frame(tag, sections_, bytes.size(), chain_);
  chain_ = digest::crc32c(bytes, crc_of(view_of(frame)));
  std::string trailer(trailer_bytes(bytes.size()), '\0');
  put(trailer, 0, chain_);
  HAPAX_CHECK(put_bytes(view_of(frame)));
  HAPAX_CHECK(put_bytes(bytes));
  HAPAX_CHECK(put_bytes(trailer));
  ++sections_;
  return Ok{};
}

Status SnapshotWriter::finish() {
  HAPAX_CHECK(put_bytes(view_of(footer_frame(sections_, chain_, size_ + kFrameBytes))));
  HAPAX_CHECK(flush());
  HAPAX_TRY(const auto file, file_.publish());
  return sync_names(*folder_);
}

Status SnapshotWriter::put_bytes(std::string_view bytes) {
  size_ += bytes.size();
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPendingMax);
    pending_.append(piece);
    bytes.remove_prefix(piece.size());
    if (pending_.size() >= kPendingMax) HAPAX_CHECK(flush());
  }
  return Ok{};
}

Status SnapshotWriter::flush() {
  HAPAX_CHECK(file_.append(pending_));
  pending_.clear();
  if (file_.size() - synced_ < kSyncEvery) return Ok{};
  synced_ = file_.size();
  return file_.sync_so_far();
}

Result<SnapshotReader> SnapshotReader::open(ports::Folder& folder, const Identity& identity,
                                            SnapshotKind kind, std::uint64_t number) {
  const std::string name = file_name(kind, number);
  HAPAX_TRY(std::unique_ptr<ports::File> file, folder.open(name, ports::OpenMode::kRead));
  HAPAX_TRY(FileWindow window, FileWindow::open(std::move(file)));
  SnapshotReader reader(folder.describe(name), std::move(window));
  HAPAX_CHECK(reader.verify(identity, kind, number));
  return reader;
}

Status SnapshotReader::verify(const Identity& identity, SnapshotKind kind, std::uint64_t number) {
  HAPAX_TRY(std::uint32_t chain, verify_header(identity, kind, number));
  std::uint64_t offset = kHeaderBytes;
  while (offset + kFrameBytes < size()) {
    HAPAX_TRY(const SnapshotSection section, verify_section(offset, chain));
    chain = section.checksum;
    offset = section.offset + section.length + trailer_bytes(section.length);
    sections_.push_back(section);
  }
  return verify_footer(offset, chain);
}

Result<std::uint32_t> SnapshotReader::verify_header(const Identity& identity, SnapshotKind kind,
                                                    std::uint64_t number) {
  HAPAX_TRY(const std::string_view bytes, window_.view(0, kHeaderBytes));
  auto header = decode_snapshot_header(bytes);
  if (!header.ok()) {
    if (header.error().code != Errc::kCorruption) return std::move(header).error().within(path_);
    return invalid(0, "the header: " + header.error().detail);
  }
  if (header->kind != kind || header->number != number) {
    return invalid(0, "it was written under another name");
  }
  if (header->store_id != identity.store_id) return invalid(0, "it belongs to another store");
  if (header->history > identity.history) return invalid(0, "it belongs to a later history");
  header_ = *header;
  return crc_of(bytes);
}

Result<SnapshotSection> SnapshotReader::verify_section(std::uint64_t offset, std::uint32_t chain) {
  HAPAX_TRY(const std::string_view frame, window_.view(offset, kFrameBytes));
  auto intact = check_block(frame, kSectionMagic, kFrameBytes);
  if (!intact.ok()) return invalid(offset, "a section's header: " + intact.error().detail);
  SnapshotSection section;
  section.tag = get<std::uint32_t>(frame, 8);
  section.offset = offset + kFrameBytes;
  section.length = get<std::uint64_t>(frame, 16);
  section.header_crc = crc_of(frame);
  if (get<std::uint32_t>(frame, 12) != sections_.size()) return invalid(offset, "wrong index");
  if (get<std::uint32_t>(frame, 24) != chain) return invalid(offset, "the chain is broken");
  // L6: the length is used only now, and only if the file is that long.
  const std::uint64_t left = size() - section.offset;
  if (section.length > kSectionBytesMax || section.length + trailer_bytes(section.length) > left) {
    return invalid(offset, "the file ends inside a section");
  }
  section.checksum = section.header_crc;
  for (std::uint64_t done = 0; done < section.length;) {
    const auto wanted = std::min<std::uint64_t>(section.length - done, kPendingMax);
    HAPAX_TRY(const auto bytes,
              window_.view(section.offset + done, static_cast<std::size_t>(wanted)));
    if (bytes.empty()) return invalid(offset, "the file became shorter");
    section.checksum = digest::crc32c(bytes, section.checksum);
    done += bytes.size();
  }
  const std::uint64_t end = section.offset + section.length;
  HAPAX_TRY(const auto trailer, window_.view(end, trailer_bytes(section.length)));
  std::string expected(trailer_bytes(section.length), '\0');
  put(expected, 0, section.checksum);
  if (trailer != expected) return invalid(offset, "a section's checksum does not match its bytes");
  return section;
}

Status SnapshotReader::verify_footer(std::uint64_t offset, std::uint32_t chain) {
  HAPAX_TRY(const std::string_view footer, window_.view(offset, kFrameBytes));
  const auto sections = static_cast<std::uint32_t>(sections_.size());
  const FrameBytes expected = footer_frame(sections, chain, offset + kFrameBytes, header_.version);
  if (footer != view_of(expected)) return invalid(offset, "the footer does not match the sections");
  return Ok{};
}

Result<std::string> SnapshotReader::read(const SnapshotSection& section) const {
  std::string bytes(static_cast<std::size_t>(section.length), '\0');
  HAPAX_TRY(const std::size_t got, window_.file().read_at(section.offset, bytes));
  if (got != bytes.size() || digest::crc32c(bytes, section.header_crc) != section.checksum) {
    return invalid(section.offset, "a section reads differently the second time");
  }
  return bytes;
}

Error SnapshotReader::invalid(std::uint64_t offset, const std::string& why) const {
  return Error{Errc::kCorruption, base::format("{} offset {}: {}", path_, offset, why)};
}

Result<SnapshotFiles> list_snapshots(ports::Folder& folder) {
  HAPAX_TRY(const std::vector<std::string> names, folder.list());
  SnapshotFiles files;
  for (const std::string& name : names) {
    const FileName parsed = parse_name(name);
    if (parsed.kind == FileName::Kind::kSnapshot) files.snapshots.emplace_back(parsed.number);
    if (parsed.kind == FileName::Kind::kPart) files.parts.push_back(parsed.number);
  }
  std::sort(files.snapshots.rbegin(), files.snapshots.rend());
  std::sort(files.parts.begin(), files.parts.end());
  return files;
}

Status remove_snapshots_below(ports::Folder& folder, Lsn oldest_kept) {
  HAPAX_TRY(const SnapshotFiles files, list_snapshots(folder));
  std::vector<std::string> names;
  for (const Lsn lsn : files.snapshots) {
    if (lsn < oldest_kept) names.push_back(snapshot_name(lsn.value));
  }
  return remove_all(folder, names);
}

Status remove_parts_except(ports::Folder& folder, std::span<const std::uint64_t> referenced) {
  HAPAX_TRY(const SnapshotFiles files, list_snapshots(folder));
  std::vector<std::string> names;
  for (const std::uint64_t part : files.parts) {
    const bool needed = std::find(referenced.begin(), referenced.end(), part) != referenced.end();
    if (!needed) names.push_back(part_name(part));
  }
  return remove_all(folder, names);
}

}  // namespace hapax::journal
