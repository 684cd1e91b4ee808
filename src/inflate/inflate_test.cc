#include "inflate/inflate.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

namespace hapax::inflate {
namespace {

std::string gzip(const std::string& text) {
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

struct Case {
  Encoding encoding;
  std::string (*pack)(const std::string&);
};
class Inflate : public testing::TestWithParam<Case> {
 protected:
  Result<std::string> run(const std::string& packed, const Limits& limits = {}) {
    return inflate(GetParam().encoding, packed, limits);
  }
  std::string pack(const std::string& text) { return GetParam().pack(text); }
};

std::string varied(std::size_t size) {  // Does not compress far.
  std::string text;
  std::uint64_t state = 1;
  while (text.size() < size) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    text.push_back(static_cast<char>(state >> 56));
  }
  return text;
}

TEST_P(Inflate, GivesBackWhatWasPacked) {
  for (const std::size_t size : {0U, 1U, 65'535U, 65'536U, 65'537U, 3'000'000U}) {
    const std::string text = varied(size);
    const auto out = run(pack(text));
    ASSERT_TRUE(out.ok()) << size << out.error().detail;
    EXPECT_EQ(*out, text);
  }
}

TEST_P(Inflate, GoesOnWithTheNextMember) {
  EXPECT_EQ(run(pack("one") + pack("two")).value(), "onetwo");
}

TEST_P(Inflate, RefusesWhatIsCutOffOrFollowedByOther) {
  const std::string packed = pack(varied(10'000));
  for (std::size_t size = 0; size < packed.size(); size += size < 64 ? 1 : 97) {
    EXPECT_EQ(run(packed.substr(0, size)).error().code, Errc::kInvalidArgument) << size;
  }
  EXPECT_EQ(run(packed + "x").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(run("no such thing").error().code, Errc::kInvalidArgument);
}

// N1: memory is bounded by the limit, and by what the sender paid for.
TEST_P(Inflate, StopsABomb) {
  const std::string bomb = pack(std::string(std::size_t{64} << 20, '0'));
  ASSERT_LT(bomb.size(), std::size_t{100} << 10);
  const auto by_ratio = run(bomb);
  EXPECT_EQ(by_ratio.error().code, Errc::kLimitExceeded);
  EXPECT_NE(by_ratio.error().detail.find("200 times"), std::string::npos);
  Limits wide;
  wide.ratio_max = 1'000'000;
  const auto by_size = run(bomb, wide);
  EXPECT_EQ(by_size.error().code, Errc::kLimitExceeded);
  EXPECT_NE(by_size.error().detail.find("50331648"), std::string::npos);
}

TEST_P(Inflate, LetsSmallBodiesBeAsDenseAsTheyLike) {
  EXPECT_EQ(run(pack(std::string(1'000'000, '0'))).value().size(), 1'000'000U);
}

INSTANTIATE_TEST_SUITE_P(Encodings, Inflate,
                         testing::Values(Case{Encoding::kGzip, gzip}, Case{Encoding::kZstd, zstd}),
                         [](const auto& one) {
                           return one.param.encoding == Encoding::kGzip ? "gzip" : "zstd";
                         });

TEST(Encoding, IsNamedInAnyCase) {
  EXPECT_EQ(encoding_of("GZip"), Encoding::kGzip);
  EXPECT_EQ(encoding_of("x-gzip"), Encoding::kGzip);
  EXPECT_EQ(encoding_of("zstd"), Encoding::kZstd);
  EXPECT_EQ(encoding_of("br"), std::nullopt);
}

}  // namespace
}  // namespace hapax::inflate
