#include "digest/base64.h"

#include <gtest/gtest.h>

namespace hapax::digest {
namespace {

TEST(Base64Text, IsReadAsItIsWritten) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes += static_cast<char>(i);
    for (const Base64 variant : {Base64::kStandard, Base64::kUrl}) {
      EXPECT_EQ(decode_base64(encode_base64(bytes, variant), variant), bytes);
    }
  }
  EXPECT_EQ(encode_base64("\xfb\xff"), "+/8=");
  EXPECT_EQ(encode_base64("\xfb\xff", Base64::kUrl), "-_8");
  EXPECT_EQ(decode_base64("+/8"), "\xfb\xff");
}

// Every byte outside of the alphabet, at every place.
TEST(Base64Text, WithAForeignByteIsRefused) {
  const std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (alphabet.find(c) != std::string_view::npos || c == '=') continue;
    for (std::size_t place = 0; place < 4; ++place) {
      std::string text = "AAAA";
      text[place] = c;
      EXPECT_FALSE(decode_base64(text, Base64::kUrl)) << byte << " at " << place;
    }
  }
  EXPECT_FALSE(decode_base64("A", Base64::kUrl));
  EXPECT_FALSE(decode_base64("AB", Base64::kUrl));  // bits beyond the last byte
  EXPECT_FALSE(decode_base64("A=AA", Base64::kUrl));
}

// Else several texts would stand for the same bytes.
TEST(Base64Text, HasAllOfItsPaddingOrNone) {
  for (const char* text : {"+w", "+w=="}) EXPECT_EQ(decode_base64(text), "\xfb") << text;
  for (const char* text : {"+/8", "+/8="}) EXPECT_EQ(decode_base64(text), "\xfb\xff") << text;
  for (const char* text :
       {"+w=", "+w===", "+/8==", "AAAA=", "AAAA==", "AAAA====", "A===", "=", "==", "===", "===="}) {
    EXPECT_FALSE(decode_base64(text)) << text;
  }
}

}  // namespace
}  // namespace hapax::digest
