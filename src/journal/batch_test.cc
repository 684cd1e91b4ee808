#include "journal/batch.h"

#include <gtest/gtest.h>

#include "digest/crc32c.h"
#include "journal/block.h"
#include "journal/segment.h"

namespace hapax::journal {
namespace {

const Batch::Seal kSeal{.flags = 0, .salt = 77, .durable = Lsn{4}, .chain = 99};

BatchView view_of(std::string_view sealed) {
  const BatchHeader header = decode_batch_header(sealed).value();
  return {header,
          sealed.substr(kHeaderBytes, header.payload),
          {3, 64},
          sealed_bytes(header.payload),
          0};
}

std::vector<std::string> facts_of(std::string_view sealed) {
  std::vector<std::string> facts;
  const BatchView batch = view_of(sealed);
  const Status walked =
      for_each_fact(batch, [&](Lsn lsn, base::Where where, std::string_view fact) -> Status {
        EXPECT_EQ(lsn.value, batch.header.first.value + facts.size());
        EXPECT_EQ(where.segment, 3U);
        EXPECT_EQ(sealed.substr(where.offset - 64, where.length), fact);
        facts.emplace_back(fact);
        return Ok{};
      });
  EXPECT_TRUE(walked.ok());
  return facts;
}

TEST(Batch, HoldsItsFactsInOrder) {
  Batch batch;
  batch.begin(Lsn{5}, time_from_ms(1'000));
  EXPECT_TRUE(batch.empty());
  const std::uint32_t first = batch.add("one");
  const std::uint32_t second = batch.add("");
  const std::uint32_t third = batch.add(std::string(300, 'x'));
  EXPECT_EQ(first, kHeaderBytes + 1);
  EXPECT_EQ(second, first + 3 + 1);
  EXPECT_EQ(third, second + 2);
  EXPECT_EQ(batch.next(), Lsn{8});
  const std::string sealed(batch.seal(kSeal));
  EXPECT_EQ(sealed.size(), batch.bytes());
  EXPECT_EQ(facts_of(sealed), (std::vector<std::string>{"one", "", std::string(300, 'x')}));
}

TEST(Batch, SealCoversHeaderAndPayload) {
  Batch batch;
  batch.begin(Lsn{5}, time_from_ms(1'000));
  batch.add("payload");
  const std::string sealed(batch.seal(kSeal));
  const BatchHeader header = decode_batch_header(sealed).value();
  EXPECT_EQ(header.salt, 77U);
  EXPECT_EQ(header.first, Lsn{5});
  EXPECT_EQ(header.count, 1U);
  EXPECT_EQ(header.durable, Lsn{4});
  EXPECT_EQ(header.chain, 99U);
  EXPECT_EQ(header.log_time, time_from_ms(1'000));
  const std::string_view payload = std::string_view(sealed).substr(kHeaderBytes, header.payload);
  const std::uint32_t crc = digest::crc32c(payload, get<std::uint32_t>(sealed, 60));
  EXPECT_EQ(get<std::uint32_t>(sealed, kHeaderBytes + header.payload), crc);
  EXPECT_EQ(batch.checksum(), crc);
  EXPECT_EQ(sealed.size() % kBatchAlignment, 0U);
}

// Whatever size was guessed, the bytes are the same.
TEST(Batch, FactsBuiltInPlaceEqualFactsAdded) {
  for (const std::size_t size : {0U, 1U, 127U, 128U, 16'383U, 16'384U, 100'000U}) {
    Batch added;
    added.begin(Lsn{1}, {});
    added.add("before");
    const std::uint32_t offset = added.add(std::string(size, 'f'));
    for (const std::size_t guess : {0U, 100U, 200U, 20'000U, 3'000'000U}) {
      Batch built;
      built.begin(Lsn{1}, {});
      built.add("before");
      built.begin_fact(guess).append(size, 'f');
      EXPECT_EQ(built.end_fact(), offset) << size << " guessed as " << guess;
      EXPECT_EQ(built.seal(kSeal), added.seal(kSeal)) << size << " guessed as " << guess;
    }
  }
}

TEST(Batch, ADroppedFactLeavesNothing) {
  Batch batch;
  batch.begin(Lsn{1}, {});
  batch.add("kept");
  batch.begin_fact().append("dropped");
  batch.drop_fact();
  EXPECT_EQ(batch.count(), 1U);
  EXPECT_EQ(facts_of(std::string(batch.seal(kSeal))), (std::vector<std::string>{"kept"}));
}

TEST(Batch, IsReusedWithoutNewMemory) {
  Batch batch;
  batch.begin(Lsn{1}, {});
  batch.add(std::string(10'000, 'x'));
  const char* const memory = batch.seal(kSeal).data();
  batch.begin(Lsn{2}, {});
  batch.add(std::string(9'000, 'y'));
  EXPECT_EQ(batch.seal(kSeal).data(), memory);
  EXPECT_EQ(facts_of(std::string(batch.seal(kSeal))).front(), std::string(9'000, 'y'));
}

TEST(Batch, CanBeSealedAgainAfterARefusal) {
  Batch batch;
  batch.begin(Lsn{1}, {});
  batch.add("fact");
  const std::string first(batch.seal(kSeal));
  const std::string other(batch.seal({.salt = 78}));
  EXPECT_NE(first, other);
  EXPECT_EQ(first, batch.seal(kSeal));
}

TEST(Batch, KnowsItsLimit) {
  Batch batch;
  batch.begin(Lsn{1}, {});
  EXPECT_TRUE(batch.has_room(kBatchBytesMax - 4));
  EXPECT_FALSE(batch.has_room(kBatchBytesMax));
  EXPECT_FALSE(batch.has_room(~std::size_t{0}));
}

TEST(Batch, APayloadThatIsNotItsFactsIsCorrupt) {
  Batch batch;
  batch.begin(Lsn{1}, {});
  batch.add("one");
  batch.add("two");
  const std::string sealed(batch.seal(kSeal));
  const auto ignore_fact = [](Lsn, base::Where, std::string_view) -> Status { return Ok{}; };
  for (const std::uint32_t count : {1U, 3U}) {
    BatchView view = view_of(sealed);
    view.header.count = count;
    const Status walked = for_each_fact(view, ignore_fact);
    ASSERT_FALSE(walked.ok());
    EXPECT_EQ(walked.error().code, Errc::kCorruption);
  }
}

}  // namespace
}  // namespace hapax::journal
