#include "base/encoding.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace hapax::base {
namespace {

std::string varint_of(std::uint64_t value) {
  std::string out;
  Encoder(out).varint(value);
  return out;
}

TEST(Encoding, VarintsGrowWithEverySevenBits) {
  for (unsigned bits = 1; bits <= 64; ++bits) {
    const std::uint64_t least = std::uint64_t{1} << (bits - 1);
    const std::uint64_t most = least | (least - 1);
    for (const std::uint64_t value : {least, most}) {
      const std::string bytes = varint_of(value);
      EXPECT_EQ(bytes.size(), (bits + 6) / 7) << value;
      Decoder in(bytes);
      EXPECT_EQ(in.varint(), value);
      EXPECT_TRUE(in.finished());
    }
  }
  EXPECT_EQ(varint_of(0), std::string(1, '\0'));
}

// The tenth byte has room for one bit: anything above it would be lost silently.
TEST(Encoding, AVarintOfMoreThan64BitsIsRefused) {
  std::string most = varint_of(std::numeric_limits<std::uint64_t>::max());
  ASSERT_EQ(most.size(), 10U);
  most.back() = '\x02';
  Decoder above(most);
  EXPECT_EQ(above.varint(), 0U);
  EXPECT_FALSE(above.ok());
  const std::string endless(11, '\x80');
  Decoder never(endless);
  EXPECT_EQ(never.varint(), 0U);
  EXPECT_FALSE(never.ok());
}

TEST(Encoding, ALengthIsNotTrusted) {
  for (const std::uint64_t length : {std::uint64_t{4}, std::numeric_limits<std::uint64_t>::max()}) {
    const std::string bytes = varint_of(length) + "abc";
    Decoder in(bytes);
    EXPECT_EQ(in.bytes(), "");
    EXPECT_FALSE(in.ok());
    EXPECT_EQ(in.left(), 0U);
  }
}

TEST(Encoding, AfterAnImpossibleReadNothingIsReadAnyMore) {
  Decoder in("abc");
  EXPECT_EQ(in.u32(), 0U);
  EXPECT_EQ(in.u8(), 0U) << "three bytes were there before";
  EXPECT_EQ(in.raw(0), "");
  EXPECT_FALSE(in.ok());
  EXPECT_FALSE(in.finished());
  Decoder refused("abc");
  refused.refuse();
  EXPECT_EQ(refused.u8(), 0U);
  EXPECT_FALSE(refused.finished());
}

TEST(Encoding, IntegersAreLittleEndian) {
  std::string out;
  Encoder encoder(out);
  encoder.u16(0x0201);
  encoder.u32(0x06050403);
  encoder.i64(-2);
  EXPECT_EQ(out, std::string("\1\2\3\4\5\6\xfe\xff\xff\xff\xff\xff\xff\xff"));
}

struct Written {
  std::uint8_t small = 0;
  std::uint16_t short_one = 0;
  std::uint32_t middle = 0;
  std::uint64_t large = 0;
  std::int64_t below = 0;
  std::uint64_t varint = 0;
  std::string text;

  [[nodiscard]] std::string encoded() const {
    std::string out;
    Encoder encoder(out);
    encoder.u8(small);
    encoder.bytes(text);
    encoder.u16(short_one);
    encoder.varint(varint);
    encoder.u32(middle);
    encoder.u64(large);
    encoder.i64(below);
    return out;
  }
  // Reads them and tells whether they are the same.
  [[nodiscard]] bool equals(Decoder& in) const {
    // In the order of the encoding: each read moves on.
    const bool first = in.u8() == small && in.bytes() == text && in.u16() == short_one;
    return first && in.varint() == varint && in.u32() == middle && in.u64() == large &&
           in.i64() == below;
  }
};

Written any_written() {
  return {.small = *rc::gen::arbitrary<std::uint8_t>(),
          .short_one = *rc::gen::arbitrary<std::uint16_t>(),
          .middle = *rc::gen::arbitrary<std::uint32_t>(),
          .large = *rc::gen::arbitrary<std::uint64_t>(),
          .below = *rc::gen::arbitrary<std::int64_t>(),
          .varint = *rc::gen::arbitrary<std::uint64_t>() >> *rc::gen::inRange(0, 64),
          .text = *rc::gen::arbitrary<std::string>()};
}

RC_GTEST_PROP(Encoding, WhatIsWrittenIsReadBack, ()) {
  const Written written = any_written();
  const std::string bytes = written.encoded();
  Decoder in(bytes);
  RC_ASSERT(written.equals(in));
  RC_ASSERT(in.finished());
}

RC_GTEST_PROP(Encoding, EveryCutIsNoticed, ()) {
  const Written written = any_written();
  const std::string bytes = written.encoded();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Decoder in(std::string_view(bytes).substr(0, size));
    static_cast<void>(in.u8());
    static_cast<void>(in.bytes());
    static_cast<void>(in.u16());
    static_cast<void>(in.varint());
    static_cast<void>(in.u32());
    static_cast<void>(in.u64());
    static_cast<void>(in.i64());
    RC_ASSERT(!in.ok());
  }
}

}  // namespace
}  // namespace hapax::base
