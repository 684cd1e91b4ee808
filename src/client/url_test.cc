#include "client/url.h"

#include <gtest/gtest.h>

namespace hapax::client {
namespace {

TEST(Url, HasSchemeHostPortAndPrefix) {
  EXPECT_EQ(*parse_url("http://127.0.0.1:7171"), (Url{false, "127.0.0.1", "7171", ""}));
  EXPECT_EQ(*parse_url("https://hapax.example/behind/"),
            (Url{true, "hapax.example", "443", "/behind"}));
  EXPECT_EQ(*parse_url("http://[::1]:80/"), (Url{false, "::1", "80", ""}));
  EXPECT_EQ(parse_url("http://[::1]:81")->text(), "http://[::1]:81");
}

TEST(Url, RefusesWhatItWouldMisunderstand) {
  for (const char* text : {"",
                           "localhost:7171",
                           "ftp://a",
                           "http://",
                           "http://:80",
                           "http://a:0",
                           "http://a:65536",
                           "http://a:x",
                           "http://u@a",
                           "http://a?b",
                           "http://[a",
                           "http://[::1]x",
                           "http://a/b c",
                           "http://a/\r\nX: y",
                           "http://a/\xc3\xa4",
                           "http://a:",
                           "http://a%0d%0aX:80",
                           "http://a,b",
                           "http://a%41",
                           "http://[v1.a]",
                           "http://[::1",
                           "http://a/%zz",
                           "http://a/b|c",
                           "http:/a"}) {
    EXPECT_FALSE(parse_url(text)) << text;
  }
}

}  // namespace
}  // namespace hapax::client
