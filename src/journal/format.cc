#include "journal/format.h"

#include "base/format.h"

namespace hapax::journal {

HeaderBytes encode(const SegmentHeader& header) {
  HeaderBytes bytes{};
  put(bytes, 10, header.flags);
  put(bytes, 12, header.number);
  put(bytes, 16, header.salt);
  put(bytes, 24, header.first.value);
  put(bytes, 32, header.history);
  put(bytes, 40, header.store);
  put(bytes, 48, header.chain);
  close_block(bytes, kSegmentMagic, header.version);
  return bytes;
}

Result<SegmentHeader> decode_segment_header(std::string_view bytes) {
  HAPAX_CHECK(check_block(bytes, kSegmentMagic, kHeaderBytes));
  SegmentHeader header;
  header.version = version_of(bytes, kSegmentMagic);
  header.flags = get<std::uint16_t>(bytes, 10);
  header.number = get<std::uint32_t>(bytes, 12);
  header.salt = get<std::uint64_t>(bytes, 16);
  header.first = Lsn{get<std::uint64_t>(bytes, 24)};
  header.history = get<std::uint64_t>(bytes, 32);
  header.store = get<std::uint64_t>(bytes, 40);
  header.chain = get<std::uint32_t>(bytes, 48);
  return header;
}

HeaderBytes encode(const BatchHeader& header) {
  HeaderBytes bytes{};
  put(bytes, 6, header.flags);
  put(bytes, 8, header.salt);
  put(bytes, 16, header.first.value);
  put(bytes, 24, header.count);
  put(bytes, 28, header.payload);
  put(bytes, 32, header.durable.value);
  put(bytes, 40, to_ms(header.log_time));
  put(bytes, 48, header.chain);
  close_block(bytes, kBatchMagic, header.version);
  return bytes;
}

Result<BatchHeader> decode_batch_header(std::string_view bytes) {
  // L6: nothing of the header, its length least of all, is looked at before its checksum holds.
  HAPAX_CHECK(check_block(bytes, kBatchMagic, kHeaderBytes));
  BatchHeader header;
  header.version = version_of(bytes, kBatchMagic);
  header.flags = get<std::uint16_t>(bytes, 6);
  header.salt = get<std::uint64_t>(bytes, 8);
  header.first = Lsn{get<std::uint64_t>(bytes, 16)};
  header.count = get<std::uint32_t>(bytes, 24);
  header.payload = get<std::uint32_t>(bytes, 28);
  header.durable = Lsn{get<std::uint64_t>(bytes, 32)};
  header.log_time = time_from_ms(get<std::int64_t>(bytes, 40));
  header.chain = get<std::uint32_t>(bytes, 48);
  if (header.payload > kBatchBytesMax) {
    return Error{Errc::kCorruption,
                 base::format("its length is {}, at most {}", header.payload, kBatchBytesMax)};
  }
  if (header.count == 0) return Error{Errc::kCorruption, "it has no facts"};
  return header;
}

}  // namespace hapax::journal
