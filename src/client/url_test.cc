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

// It is called as it is written: whose it is knows what an empty query or a slash at the end means.
TEST(Url, OfAnEndpointHasATarget) {
  const auto target_of = [](std::string_view text) { return parse_endpoint_url(text)->target; };
  EXPECT_EQ(target_of("https://shop.example/in?key=1&to=a%20b"), "/in?key=1&to=a%20b");
  EXPECT_EQ(target_of("https://shop.example?key=1"), "/?key=1");
  EXPECT_EQ(target_of("https://shop.example/in/"), "/in/");
  EXPECT_EQ(target_of("https://shop.example/in?"), "/in?");
  EXPECT_EQ(target_of("https://shop.example"), "/");
  EXPECT_EQ(target_of("https://shop.example/streams/a?b=/streams/c"), "/streams/a?b=/streams/c");
  EXPECT_EQ(parse_endpoint_url("https://shop.example/in?a")->server,
            (Url{true, "shop.example", "443", ""}));
  for (const char* text :
       {"http://a/in?b c", "http://a/in?\r\nX: y", "http://u:p@a/in?b", "http://a/in?b#c", "a?b"}) {
    EXPECT_FALSE(parse_endpoint_url(text)) << text;
  }
}

}  // namespace
}  // namespace hapax::client
