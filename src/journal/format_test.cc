#include "journal/format.h"

#include <gtest/gtest.h>

#include "digest/crc32c.h"
#include "journal/block.h"
#include "journal/identity.h"
#include "journal/marks.h"
#include "journal/names.h"

namespace hapax::journal {
namespace {

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += hex(static_cast<unsigned char>(byte)).substr(6);
  return text;
}
std::string hex_of(const HeaderBytes& bytes) { return hex_of({bytes.data(), bytes.size()}); }

const SegmentHeader kSegmentHeader{.flags = 1,
                                   .number = 0x2a,
                                   .salt = 0x1122334455667788,
                                   .first = Lsn{0x0102030405060708},
                                   .history = 3,
                                   .store = 0xa1a2a3a4a5a6a7a8,
                                   .chain = 0xc1c2c3c4};
const BatchHeader kBatchHeader{.flags = 2,
                               .salt = 0x1122334455667788,
                               .first = Lsn{0x0102030405060708},
                               .count = 7,
                               .payload = 0x100,
                               .durable = Lsn{0x0102030405060707},
                               .log_time = time_from_ms(0x0000018bcfe56800),
                               .chain = 0xc1c2c3c4};

// Golden: these bytes are on users' disks. A change here is a new format version.
TEST(Format, SegmentHeaderHasTheseBytes) {
  EXPECT_EQ(hex_of(encode(kSegmentHeader)),
            "4841504158534547"  // "HAPAXSEG"
            "02000100"          // version, flags
            "2a000000"          // number
            "8877665544332211"  // salt
            "0807060504030201"  // first lsn
            "0300000000000000"  // history
            "a8a7a6a5a4a3a2a1"  // store
            "c4c3c2c1"          // chain
            "0000000000000000"
            "b7d50b6a");
}

TEST(Format, BatchHeaderHasTheseBytes) {
  EXPECT_EQ(hex_of(encode(kBatchHeader)),
            "48584231"          // "HXB1"
            "02000200"          // version, flags
            "8877665544332211"  // salt
            "0807060504030201"  // first lsn
            "07000000"          // count
            "00010000"          // payload
            "0707060504030201"  // durable lsn
            "0068e5cf8b010000"  // log time
            "c4c3c2c1"          // chain
            "0000000000000000"
            "93d195e2");
}

TEST(Format, MarkHasTheseBytes) {
  const Mark mark{MarkKind::kClean, 9,
                  Lsn{0x11},        0x1122334455667788,
                  {0x2a, 0x40},     time_from_ms(0x0000018bcfe56800)};
  EXPECT_EQ(hex_of(encode(mark)),
            "48584d31"          // "HXM1"
            "02000100"          // version, flags
            "0900000000000000"  // counter
            "1100000000000000"  // durable lsn
            "8877665544332211"  // salt
            "2a00000040000000"  // end
            "0068e5cf8b010000"  // log time
            "000000000000000000000000"
            "ab8fa929");
}

TEST(Format, StoreHasTheseBytes) {
  Identity identity;
  for (std::size_t i = 0; i < 16; ++i) {
    identity.store_id[i] = static_cast<char>(i);
    identity.hash_key[i] = static_cast<char>(0x80 + i);
  }
  identity.history = 5;
  identity.created_ms = 0x0000018bcfe56800;
  const std::string bytes = encode(identity);
  ASSERT_EQ(bytes.size(), 4096U + 72U);
  EXPECT_EQ(hex_of(bytes.substr(0, 72)),
            "484150415853544f"  // "HAPAXSTO"
            "0200000000000000"  // version
            "000102030405060708090a0b0c0d0e0f"
            "808182838485868788898a8b8c8d8e8f"
            "0500000000000000"  // history
            "0068e5cf8b010000"  // created
            "00000000"
            "9e6a71d7");
  EXPECT_EQ(bytes.substr(0, 72), bytes.substr(4096));
}

TEST(Format, HeadersSurviveTheRoundTrip) {
  const HeaderBytes segment = encode(kSegmentHeader);
  EXPECT_EQ(decode_segment_header({segment.data(), segment.size()}).value(), kSegmentHeader);
  const HeaderBytes batch = encode(kBatchHeader);
  EXPECT_EQ(decode_batch_header({batch.data(), batch.size()}).value(), kBatchHeader);
}

// Of the first format on: what its programs wrote is read, and is told apart.
TEST(Format, EveryVersionUpToThePresentOneIsRead) {
  for (std::uint16_t version = kFormatVersionFirst; version <= kFormatVersion; ++version) {
    SegmentHeader segment = kSegmentHeader;
    segment.version = version;
    const HeaderBytes bytes = encode(segment);
    EXPECT_EQ(decode_segment_header({bytes.data(), bytes.size()}).value(), segment);
    BatchHeader batch = kBatchHeader;
    batch.version = version;
    const HeaderBytes front = encode(batch);
    EXPECT_EQ(decode_batch_header({front.data(), front.size()}).value(), batch);
  }
}

// L6: no flipped bit gets past the checksum, so no field is used that was not written.
TEST(Format, EveryFlippedBitIsRefused) {
  const HeaderBytes intact = encode(kBatchHeader);
  for (std::size_t bit = 0; bit < intact.size() * 8; ++bit) {
    HeaderBytes bytes = intact;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    const auto decoded = decode_batch_header({bytes.data(), bytes.size()});
    ASSERT_FALSE(decoded.ok()) << "bit " << bit;
    EXPECT_EQ(decoded.error().code, Errc::kCorruption);
  }
}

TEST(Format, ShortBytesAreRefused) {
  const HeaderBytes bytes = encode(kBatchHeader);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_batch_header({bytes.data(), size}).ok()) << size;
  }
}

// L6: a length above the limit is refused even if its checksum is right.
TEST(Format, TooLongABatchIsRefused) {
  BatchHeader header = kBatchHeader;
  header.payload = kBatchBytesMax + 1;
  const HeaderBytes bytes = encode(header);
  EXPECT_FALSE(decode_batch_header({bytes.data(), bytes.size()}).ok());
  header.payload = kBatchBytesMax;
  const HeaderBytes longest = encode(header);
  EXPECT_TRUE(decode_batch_header({longest.data(), longest.size()}).ok());
}

TEST(Format, ABatchWithoutFactsIsRefused) {
  BatchHeader header = kBatchHeader;
  header.count = 0;
  const HeaderBytes bytes = encode(header);
  EXPECT_FALSE(decode_batch_header({bytes.data(), bytes.size()}).ok());
}

TEST(Format, ANewerVersionIsToldApartFromDamage) {
  HeaderBytes bytes = encode(kSegmentHeader);
  put(std::span<char>(bytes), 8, std::uint16_t{kFormatVersion + 1});
  put(std::span<char>(bytes), 60, digest::crc32c({bytes.data(), 60}));
  const auto decoded = decode_segment_header({bytes.data(), bytes.size()});
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().code, Errc::kFormatVersion);
}

TEST(Slot, FollowsFromSizesAlone) {
  EXPECT_EQ(sealed_bytes(1), 72U);
  EXPECT_EQ(sealed_bytes(4), 72U);
  EXPECT_EQ(sealed_bytes(5), 80U);
  EXPECT_EQ(slot_after({1, 64}, 72, 512), (Slot{1, 136}));
  EXPECT_EQ(slot_after({1, 440}, 64, 512), (Slot{1, 504}));
  EXPECT_EQ(slot_after({1, 440}, 72, 512), (Slot{2, 64}));
  EXPECT_EQ(slot_after({1, 440}, 10'000, 512), (Slot{2, 64}));
}

TEST(Names, AreParsedAsTheyAreMade) {
  using Kind = FileName::Kind;
  EXPECT_EQ(segment_name(0x2a), "journal-000000000000002a.log");
  EXPECT_EQ(snapshot_name(0x2a), "snapshot-000000000000002a.snap");
  EXPECT_EQ(part_name(0x2a), "part-000000000000002a.part");
  EXPECT_EQ(torn_tail_name(0x2a, 0x40), "quarantine-journal-000000000000002a-at-0000000000000040");
  EXPECT_EQ(parse_name(segment_name(0x2a)).kind, Kind::kSegment);
  EXPECT_EQ(parse_name(segment_name(0x2a)).number, 0x2aU);
  EXPECT_EQ(parse_name(snapshot_name(7)).kind, Kind::kSnapshot);
  EXPECT_EQ(parse_name(part_name(7)).kind, Kind::kPart);
  EXPECT_EQ(parse_name(torn_tail_name(3, 64)).kind, Kind::kQuarantine);
  EXPECT_EQ(parse_name(torn_tail_name(3, 64)).number, 3U);
  EXPECT_EQ(parse_name(quarantine_name(segment_name(9))).number, 9U);
  EXPECT_EQ(parse_name("STORE").kind, Kind::kStore);
  EXPECT_EQ(parse_name("MARKS.tmp").kind, Kind::kUnfinished);
  EXPECT_EQ(parse_name(segment_name(1) + ".tmp").kind, Kind::kUnfinished);
  EXPECT_EQ(parse_name(torn_tail_name(3, 64) + ".tmp").kind, Kind::kUnfinished);
  EXPECT_EQ(parse_name(part_name(7) + ".renewed").kind, Kind::kRenewed);
}

// L10: what is nearly a name of ours is not ours.
TEST(Names, OfOthersAreUnknown) {
  for (const std::string_view name :
       {"", "store", "journal-2a.log", "journal-000000000000002A.log", "lost+found",
        "journal-000000000000002a.log.bak", "journal-000000010000002a.log", ".log",
        "journal-000000000000002a.log.tmp.tmp", "notes.tmp", "snapshot-.snap",
        "journal-000000000000002a.snap", "journal-000000000000002a.log.renewed"}) {
    EXPECT_EQ(parse_name(name).kind, FileName::Kind::kUnknown) << name;
  }
  EXPECT_EQ(parse_name("quarantine-mine.tmp").kind, FileName::Kind::kQuarantine);
}

}  // namespace
}  // namespace hapax::journal
