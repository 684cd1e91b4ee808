#include "http/response_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::http {
namespace {

using testing::HasSubstr;

constexpr std::size_t kBodyMax = 100;
const std::string kHints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
const std::string kFinal = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\n\r\nok";

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int n = 0; n < times; ++n) all += text;
  return all;
}

// It is complete with the last piece and not before.
Response read_in_pieces(std::string_view all, std::size_t size) {
  ResponseReader reader(kBodyMax);
  for (std::size_t at = 0; at < all.size(); at += size) {
    const auto complete = reader.put(all.substr(at, size));
    EXPECT_TRUE(complete) << complete.error().text();
    if (!complete) return {};
    EXPECT_EQ(*complete, at + size >= all.size()) << size << " bytes at " << at;
  }
  EXPECT_TRUE(reader.keep_alive());
  return reader.take();
}

TEST(ResponseReader, SkipsInterimAnswersHoweverTheyAreCut) {
  const std::string all = "HTTP/1.1 100 Continue\r\n\r\n" + kHints + kFinal;
  for (std::size_t size = 1; size <= all.size(); ++size) {
    const Response response = read_in_pieces(all, size);
    EXPECT_EQ(response.status, 200U);
    EXPECT_EQ(response.body, "ok");
    EXPECT_EQ(response.fields.get("x"), "y");
    EXPECT_EQ(response.fields.get("link"), "") << "of the interim answer";
  }
}

TEST(ResponseReader, ReadsChunksHoweverTheyAreCut) {
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string all = head + "2\r\n{\"\r\n5\r\na\":1}\r\n0\r\nTrailer: x\r\n\r\n";
  for (std::size_t size = 1; size <= all.size(); ++size) {
    EXPECT_EQ(read_in_pieces(all, size).body, "{\"a\":1}");
  }
  ResponseReader large(kBodyMax);
  EXPECT_FALSE(large.put(head + "65\r\n" + std::string(101, 'x') + "\r\n0\r\n\r\n"));
  ResponseReader half(kBodyMax);
  EXPECT_FALSE(*half.put(head + "2\r\n{}\r\n"));
  EXPECT_FALSE(half.end());
}

TEST(ResponseReader, KeepsNoConnectionOnWhichMoreCameThanWasAskedFor) {
  ResponseReader reader(kBodyMax);
  ASSERT_TRUE(*reader.put(kFinal + kFinal));
  EXPECT_FALSE(reader.keep_alive());
  EXPECT_EQ(reader.take().body, "ok");
}

TEST(ResponseReader, TakesNoInterimAnswerForTheWhole) {
  ResponseReader reader(kBodyMax);
  EXPECT_FALSE(*reader.put(kHints));
  const Status ended = reader.end();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::kUnavailable);
}

TEST(ResponseReader, SkipsNoEndlessNumberOfInterimAnswers) {
  ResponseReader enough(kBodyMax);
  EXPECT_TRUE(*enough.put(repeated(kHints, 16) + kFinal));
  ResponseReader more(kBodyMax);
  const auto refused = more.put(repeated(kHints, 17) + kFinal);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kUnsupportedMedia);
  EXPECT_THAT(refused.error().detail, HasSubstr("HTTP 103"));
}

TEST(ResponseReader, RefusesAChangeOfProtocol) {
  ResponseReader reader(kBodyMax);
  const auto refused = reader.put("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kUnsupportedMedia);
}

}  // namespace
}  // namespace hapax::http
