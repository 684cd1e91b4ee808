#include "journal/segment.h"

#include <algorithm>

#include "base/encoding.h"
#include "base/format.h"
#include "base/mutant.h"
#include "digest/crc32c.h"
#include "journal/block.h"
#include "journal/names.h"
#include "journal/new_file.h"

namespace hapax::journal {
namespace {

Error invalid(std::string why) { return Error{Errc::kCorruption, std::move(why)}; }

std::string differs(std::string_view what, std::uint64_t actual, std::uint64_t expected) {
  return base::format("{} is {}, expected {}", what, actual, expected);
}

Status check_belongs(const SegmentHeader& header, const Identity& identity, std::uint32_t number) {
  if (header.number != number) {
    return invalid(differs("its segment number", header.number, number));
  }
  if (header.store != identity.store()) {
    return invalid("it belongs to the store " + hex16(header.store) + ", this one is " +
                   hex16(identity.store()));
  }
  if (header.history > identity.history) {
    return invalid(base::format("it belongs to history {}, the store is at history {}",
                                header.history, identity.history));
  }
  return Ok{};
}

Status check_follows(const BatchHeader& header, const SegmentReader::Expected& expected) {
  if (header.first != expected.first) {
    return invalid(differs("its first lsn", header.first.value, expected.first.value));
  }
  if (header.chain != expected.chain) {
    return invalid("it follows a batch with checksum " + hex(header.chain) +
                   ", the one before it has " + hex(expected.chain));
  }
  return Ok{};
}

bool is_zero(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

// `bytes`: the batch with this header, and no more.
Result<BatchView> view_payload(std::string_view bytes, const BatchHeader& header, Slot slot) {
  const std::uint32_t size = sealed_bytes(header.payload);
  if (bytes.size() < size) {
    return invalid(base::format("the file ends inside it: {} of {} bytes", bytes.size(), size));
  }
  const std::string_view payload = bytes.substr(kHeaderBytes, header.payload);
  const std::size_t payload_end = kHeaderBytes + header.payload;
  const std::uint32_t actual = digest::crc32c(payload, crc_of(bytes.substr(0, kHeaderBytes)));
  const auto checksum = get<std::uint32_t>(bytes, payload_end);
  if (actual != checksum) {
    return invalid("its payload's checksum is " + hex(actual) + ", expected " + hex(checksum));
  }
  if (!is_zero(bytes.substr(payload_end + kChecksumBytes))) {
    return invalid("the bytes behind its checksum are not zero");
  }
  return BatchView{header, payload, slot, size, checksum};
}

}  // namespace

Result<BatchView> view_batch(std::string_view bytes, Slot slot) {
  HAPAX_TRY(const BatchHeader header, decode_batch_header(bytes));
  return view_payload(bytes, header, slot);
}

Status for_each_fact(const BatchView& batch, const FactVisitor& visit) {
  base::Decoder decoder(batch.payload);
  for (std::uint32_t index = 0; index < batch.header.count; ++index) {
    const std::string_view fact = decoder.bytes();
    if (!decoder.ok()) break;
    const auto offset = static_cast<std::uint32_t>(fact.data() - batch.payload.data());
    const base::Where where{batch.slot.segment, batch.slot.offset + kHeaderBytes + offset,
                            static_cast<std::uint32_t>(fact.size())};
    HAPAX_CHECK(visit(Lsn{batch.header.first.value + index}, where, fact));
  }
  if (decoder.finished()) return Ok{};
  return invalid(
      base::format("{} offset {}: the payload is not {} facts although its checksum holds",
                   segment_name(batch.slot.segment), batch.slot.offset, batch.header.count));
}

Result<std::unique_ptr<ports::File>> create_segment(ports::Folder& folder,
                                                    const SegmentHeader& header,
                                                    std::string_view batches) {
  const HeaderBytes front = encode(header);
  HAPAX_TRY(NewFile file, NewFile::create(folder, segment_name(header.number)));
  HAPAX_CHECK(file.append({front.data(), front.size()}));
  if (!batches.empty()) HAPAX_CHECK(file.append(batches));
  HAPAX_TRY(auto published, file.publish());
  HAPAX_CHECK(sync_names(folder));
  return published;
}

Result<SegmentReader> SegmentReader::open(ports::Folder& folder, const Identity& identity,
                                          std::uint32_t number) {
  HAPAX_TRY(std::unique_ptr<ports::File> file,
            folder.open(segment_name(number), ports::OpenMode::kRead));
  HAPAX_TRY(FileWindow window, FileWindow::open(std::move(file)));
  HAPAX_TRY(const std::string_view bytes, window.view(0, kHeaderBytes));
  HAPAX_TRY(const SegmentHeader header, decode_segment_header(bytes));
  HAPAX_CHECK(check_belongs(header, identity, number));
  return SegmentReader(std::move(window), header);
}

Result<BatchView> SegmentReader::read(std::uint64_t offset, const Expected& expected) {
  HAPAX_TRY(const BatchHeader header, read_header(offset));
  HAPAX_CHECK(check_follows(header, expected));
  return read_batch(offset, header);
}

Result<BatchView> SegmentReader::read_any(std::uint64_t offset) {
  HAPAX_TRY(const BatchHeader header, read_header(offset));
  return read_batch(offset, header);
}

Result<BatchHeader> SegmentReader::read_header(std::uint64_t offset) {
  HAPAX_TRY(const std::string_view bytes, window_.view(offset, kHeaderBytes));
  if (is_zero(bytes)) return invalid("there is no batch");
  if (base::mutant(base::Mutant::kTrustLength) && bytes.size() == kHeaderBytes) {
    const auto length = get<std::uint32_t>(bytes, 28);
    if (length > kBatchBytesMax) return Error{Errc::kLimitExceeded, "a batch is too long"};
  }
  HAPAX_TRY(const BatchHeader header, decode_batch_header(bytes));
  if (header.salt != header_.salt) return invalid("its salt is that of another segment");
  return header;
}

Result<BatchView> SegmentReader::read_batch(std::uint64_t offset, const BatchHeader& header) {
  HAPAX_TRY(const std::string_view bytes, window_.view(offset, sealed_bytes(header.payload)));
  return view_payload(bytes, header, {header_.number, static_cast<std::uint32_t>(offset)});
}

Result<std::optional<SegmentReader::Found>> SegmentReader::find_header(std::uint64_t from) {
  constexpr std::uint64_t kStep = kBatchAlignment;
  from = (from + kStep - 1) / kStep * kStep;
  for (std::uint64_t offset = from; offset + kHeaderBytes <= size(); offset += kStep) {
    HAPAX_TRY(const std::string_view bytes, window_.view(offset, kHeaderBytes));
    const bool likely = bytes.size() == kHeaderBytes && bytes.starts_with(kBatchMagic) &&
                        get<std::uint64_t>(bytes, 8) == header_.salt;
    if (!likely) continue;
    auto header = decode_batch_header(bytes);
    if (header.ok()) return std::optional(Found{offset, *header});
  }
  return std::optional<Found>{};
}

Result<std::vector<Segment>> list_segments(ports::Folder& folder, const Identity& identity) {
  HAPAX_TRY(const std::vector<std::string> names, folder.list());
  std::vector<Segment> segments;
  for (const std::string& name : names) {
    const FileName file = parse_name(name);
    if (file.kind != FileName::Kind::kSegment) continue;
    const auto number = static_cast<std::uint32_t>(file.number);
    auto reader = SegmentReader::open(folder, identity, number);
    if (reader.ok()) {
      segments.push_back({number, reader->size(), reader->header()});
    } else if (reader.error().code == Errc::kCorruption) {
      segments.push_back({number, 0, std::move(reader).error()});
    } else {
      return std::move(reader).error().within(folder.describe(name));
    }
  }
  // Names sort as their numbers do.
  return segments;
}

}  // namespace hapax::journal
