#include "webhook/exchange.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::webhook {
namespace {

using ::testing::HasSubstr;

std::string origin(const std::string& url) {
  const auto found = origin_of(url);
  return found ? *found : found.error().detail;
}

std::string judged(const SendRequest& request) {
  const Status status = check_request(request);
  return status ? "taken" : status.error().detail;
}

SendRequest to(std::string url) {
  SendRequest request;
  request.url = std::move(url);
  return request;
}

TEST(OriginOf, IsSchemeHostAndPort) {
  EXPECT_EQ(origin("http://a.example"), "http://a.example:80");
  EXPECT_EQ(origin("https://A.Example/x?y=z"), "https://a.example:443");
  EXPECT_EQ(origin("HTTP://a:8080/"), "http://a:8080");
  EXPECT_EQ(origin("https://[2001:DB8::1]:8443/"), "https://[2001:db8::1]:8443");
  EXPECT_EQ(origin("http://127.1/"), "http://127.0.0.1:80");
  EXPECT_EQ(origin("http://a/b@c?d@e"), "http://a:80");
}

TEST(OriginOf, RefusesUrlsThatAreNoEndpoint) {
  EXPECT_THAT(origin("ftp://a/"), HasSubstr("neither http nor https"));
  EXPECT_THAT(origin("file:///etc/passwd"), HasSubstr("neither http nor https"));
  EXPECT_THAT(origin("http://user@a/"), HasSubstr("names a user"));
  EXPECT_THAT(origin("http://user:secret@a/"), HasSubstr("names a user"));
  EXPECT_THAT(origin("http://@a/"), HasSubstr("names a user"));
  EXPECT_THAT(origin("http://a/#top"), HasSubstr("fragment"));
  EXPECT_THAT(origin("http://a/\r\nX: y"), HasSubstr("control characters"));
  EXPECT_THAT(origin(std::string("http://a/\0b", 11)), HasSubstr("control characters"));
  EXPECT_THAT(origin("http://a/b c"), HasSubstr("control characters"));
  EXPECT_THAT(origin("http://b\xc3\xbc"
                     "cher.example/"),
              HasSubstr("outside ASCII"));
  EXPECT_THAT(origin("http://a\\@b/"), HasSubstr("backslash"));
  EXPECT_THAT(origin("http:/a/"), HasSubstr("two slashes"));
  EXPECT_THAT(origin("http:///a/"), HasSubstr("two slashes"));
  EXPECT_THAT(origin("http://a/" + std::string(9'000, 'x')), HasSubstr("8 KiB"));
  for (const char* url : {"", "a.example", "//a.example/", "http://", "http://:80/", "http://a:x/",
                          "http://a:65536/", "http://[::1/", "http://a b/"}) {
    EXPECT_FALSE(origin_of(url)) << url;
  }
}

TEST(CheckRequest, TakesOnlyKnownMethods) {
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE", "GET", "OPTIONS"}) {
    SendRequest request = to("http://a/");
    request.method = method;
    EXPECT_EQ(judged(request), "taken");
  }
  for (const char* method : {"", "post", "HEAD", "CONNECT", "TRACE", "GET / HTTP/1.1\r\nX:"}) {
    SendRequest request = to("http://a/");
    request.method = method;
    EXPECT_THAT(judged(request), HasSubstr("method"));
  }
}

TEST(CheckRequest, RefusesHeadersThatWouldChangeTheRequest) {
  const auto with = [](std::string name, std::string value) {
    SendRequest request = to("http://a/");
    request.headers = {{std::move(name), std::move(value)}};
    return judged(request);
  };
  EXPECT_EQ(with("Content-Type", "application/json; charset=utf-8"), "taken");
  EXPECT_EQ(with("X-Empty", ""), "taken");
  EXPECT_EQ(with("X-Tab", "a\tb"), "taken");
  EXPECT_THAT(with("X", "a\r\nHost: b"), HasSubstr("control characters"));
  EXPECT_THAT(with("X", "a\nb"), HasSubstr("control characters"));
  EXPECT_THAT(with("X", std::string("a\0b", 3)), HasSubstr("control characters"));
  EXPECT_THAT(with("", "a"), HasSubstr("not a token"));
  EXPECT_THAT(with("X Y", "a"), HasSubstr("not a token"));
  EXPECT_THAT(with("X:", "a"), HasSubstr("not a token"));
  EXPECT_THAT(with("X\r\nY", "a"), HasSubstr("not a token"));
  for (const char* name :
       {"Host", "content-length", "Transfer-Encoding", "CONNECTION", "Expect", "Upgrade", "TE",
        "Trailer", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization"}) {
    EXPECT_THAT(with(name, "1"), HasSubstr("set by the sender itself")) << name;
  }
}

TEST(CheckRequest, GuardsNothingBehindAProxyThatDoesNotFilter) {
  SendRequest request = to("http://a/");
  request.proxy.url = "http://proxy:3128";
  EXPECT_THAT(judged(request), HasSubstr("the proxy filters"));
  request.proxy.filters = true;
  EXPECT_EQ(judged(request), "taken");
  request.proxy.filters = false;
  request.guarded = false;
  EXPECT_EQ(judged(request), "taken");
}

TEST(CheckRequest, WantsTimeouts) {
  SendRequest request = to("http://a/");
  request.total_timeout = std::chrono::milliseconds(0);
  EXPECT_THAT(judged(request), HasSubstr("timeout"));
  request = to("http://a/");
  request.connect_timeout = std::chrono::milliseconds(-1);
  EXPECT_THAT(judged(request), HasSubstr("timeout"));
}

TEST(SendWords, AreOneForEach) {
  EXPECT_EQ(word_of(SendEnding::kAnswered), "answered");
  EXPECT_EQ(word_of(SendEnding::kUnknown), "unknown");
  EXPECT_EQ(word_of(SendCause::kNone), "none");
  EXPECT_EQ(word_of(SendCause::kBroken), "broken");
  EXPECT_EQ(word_of(SendCause::kStopped), "stopped");
}

}  // namespace
}  // namespace hapax::webhook
