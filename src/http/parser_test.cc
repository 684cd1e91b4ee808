#include "http/parser.h"

#include <cstdio>

#include <gtest/gtest.h>

#include "http/date.h"

namespace hapax::http {
namespace {

struct Outcome {
  Progress progress = Progress::kMore;
  std::size_t used = 0;
  Request request;
  Problem problem;
};

// Feeds the bytes in pieces of `step` as a connection would.
Outcome feed(std::string_view bytes, std::size_t step, const ParserLimits& limits = {}) {
  Parser parser(limits);
  Outcome outcome;
  std::size_t end = 0;
  while (end < bytes.size()) {
    end = std::min(bytes.size(), end + step);
    for (;;) {
      std::size_t used = 0;
      outcome.progress = parser.put(bytes.substr(outcome.used, end - outcome.used), used);
      outcome.used += used;
      if (outcome.progress != Progress::kHeader) break;
    }
    if (outcome.progress != Progress::kMore) break;
  }
  outcome.request = std::move(parser.request());
  outcome.problem = parser.problem();
  return outcome;
}

TEST(HttpParser, ReadsTheSameHoweverTheBytesArrive) {
  const std::string bytes =
      "POST /a%20b/c?x=1&y=a+b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhelloGET";
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    const Outcome outcome = feed(bytes, step);
    ASSERT_EQ(outcome.progress, Progress::kRequest) << step << outcome.problem.detail;
    EXPECT_EQ(outcome.used, bytes.size() - 3);
    EXPECT_EQ(outcome.request.method, "POST");
    EXPECT_EQ(outcome.request.path, (std::vector<std::string>{"a b", "c"}));
    EXPECT_EQ(outcome.request.query_value("y"), "a b");
    EXPECT_EQ(outcome.request.body, "hello");
    EXPECT_TRUE(outcome.request.keep_alive);
  }
}

TEST(HttpParser, SkipsTwoEmptyLinesBeforeARequest) {
  const std::string request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  for (const std::size_t step : {1U, 2U, 3U, 100U}) {
    EXPECT_EQ(feed("\r\n\r\n" + request, step).progress, Progress::kRequest) << step;
    EXPECT_EQ(feed("\r\n\r\n\r\n" + request, step).progress, Progress::kBroken) << step;
  }
}

TEST(HttpParser, ReadsChunks) {
  const std::string bytes =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n";
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
    const Outcome outcome = feed(bytes, step);
    ASSERT_EQ(outcome.progress, Progress::kRequest) << step << outcome.problem.detail;
    EXPECT_EQ(outcome.request.body, "hello world");
    EXPECT_EQ(outcome.used, bytes.size());
  }
}

TEST(HttpParser, AnEmptyLineBeforeARequestIsSkipped) {
  const Outcome outcome = feed("\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 100);
  EXPECT_EQ(outcome.progress, Progress::kRequest);
}

TEST(HttpParser, AnOldClientClosesUnlessItSaysOtherwise) {
  EXPECT_FALSE(feed("GET / HTTP/1.0\r\n\r\n", 100).request.keep_alive);
  EXPECT_TRUE(feed("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 100).request.keep_alive);
  EXPECT_FALSE(
      feed("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 100).request.keep_alive);
}

struct Smuggled {
  const char* name;
  const char* bytes;
  unsigned status;
};

void PrintTo(const Smuggled& one, std::ostream* out) { *out << one.name; }

class HttpRefusal : public testing::TestWithParam<Smuggled> {};

// What two programs could understand differently is refused, however it arrives.
TEST_P(HttpRefusal, IsRefused) {
  for (const std::size_t step : {std::size_t{1}, std::size_t{10'000}}) {
    const Outcome outcome = feed(GetParam().bytes, step);
    ASSERT_EQ(outcome.progress, Progress::kBroken);
    EXPECT_EQ(outcome.problem.status, GetParam().status) << outcome.problem.detail;
    EXPECT_FALSE(outcome.problem.detail.empty());
  }
}

#define HAPAX_POST "POST / HTTP/1.1\r\nHost: h\r\n"
INSTANTIATE_TEST_SUITE_P(
    Smuggling, HttpRefusal,
    testing::Values(
        Smuggled{"two lengths", HAPAX_POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
                 400},
        Smuggled{"same length twice",
                 HAPAX_POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400},
        Smuggled{"list of lengths", HAPAX_POST "Content-Length: 5, 5\r\n\r\nhello", 400},
        Smuggled{"signed length", HAPAX_POST "Content-Length: +5\r\n\r\nhello", 400},
        Smuggled{"hex length", HAPAX_POST "Content-Length: 0x5\r\n\r\nhello", 400},
        Smuggled{"length and chunks",
                 HAPAX_POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                 400},
        Smuggled{"chunked twice",
                 HAPAX_POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
                 400},
        Smuggled{"other encoding", HAPAX_POST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
        Smuggled{"chunked and more", HAPAX_POST "Transfer-Encoding: chunked, identity\r\n\r\n",
                 501},
        Smuggled{"chunks in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        Smuggled{"folded", "GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n", 400},
        Smuggled{"bare LF", "GET / HTTP/1.1\nHost: h\r\n\r\n\r\n", 400},
        Smuggled{"bare CR", "GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n", 400},
        Smuggled{"space before colon", "GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400},
        Smuggled{"no host", "GET / HTTP/1.1\r\n\r\n", 400},
        Smuggled{"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        Smuggled{"bad chunk size",
                 HAPAX_POST "Transfer-Encoding: chunked\r\n\r\n5x\r\nhello\r\n0\r\n\r\n", 400},
        Smuggled{"huge chunk size",
                 HAPAX_POST "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400},
        Smuggled{"chunk without end",
                 HAPAX_POST "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n", 400},
        Smuggled{"no path", "GET nothing HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        Smuggled{"broken escape", "GET /%4 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        Smuggled{"another protocol", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
        Smuggled{"a version to come", "GET / HTTP/1.2\r\nHost: h\r\n\r\n", 505},
        Smuggled{"no version", "GET / HTTP/one\r\nHost: h\r\n\r\n", 400},
        Smuggled{"strange expectation", "GET / HTTP/1.1\r\nHost: h\r\nExpect: a\r\n\r\n", 417}));
#undef HAPAX_POST

// Names may have any bytes.
TEST(HttpParser, EveryByteCanBeEscaped) {
  for (int byte = 0; byte < 256; ++byte) {
    char escape[8];
    std::snprintf(escape, sizeof escape, "%%%02x", static_cast<unsigned>(byte));
    const std::string target = std::string("/a") + escape + "?q=" + escape;
    const Outcome outcome = feed("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n", 1000);
    ASSERT_EQ(outcome.progress, Progress::kRequest) << byte;
    const std::string wanted(1, static_cast<char>(byte));
    EXPECT_EQ(outcome.request.path, std::vector<std::string>{"a" + wanted});
    EXPECT_EQ(outcome.request.query_value("q"), wanted);
  }
}

// RFC 3986 wants them escaped, and clients do not always do it.
TEST(HttpParser, WhatNoUriMayHoldStandsForItself) {
  for (const std::string text :
       {"\xc3\xa4", "a|b", "{x}", "[1]", "\"", "<>", "^", "\\", "`", "#"}) {
    const Outcome outcome =
        feed("GET /" + text + "?q=" + text + " HTTP/1.1\r\nHost: h\r\n\r\n", 1000);
    ASSERT_EQ(outcome.progress, Progress::kRequest) << text;
    EXPECT_EQ(outcome.request.path, std::vector<std::string>{text});
    EXPECT_EQ(outcome.request.query_value("q"), text);
  }
}

// Neither is read away: "/a//b/" has an empty segment, and none behind the last slash.
TEST(HttpParser, SegmentsAndParametersAreThoseBetweenTheMarks) {
  const Outcome outcome = feed("GET /a//b/?x&&=1&y=a=b HTTP/1.1\r\nHost: h\r\n\r\n", 1000);
  EXPECT_EQ(outcome.request.path, (std::vector<std::string>{"a", "", "b"}));
  const std::vector<std::pair<std::string, std::string>> query{{"x", ""}, {"", "1"}, {"y", "a=b"}};
  EXPECT_EQ(outcome.request.query, query);
}

std::string addressed(std::string_view target, std::string_view host) {
  const std::string bytes =
      "GET " + std::string(target) + " HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n";
  const Outcome outcome = feed(bytes, 1000);
  if (outcome.progress != Progress::kRequest) return std::to_string(outcome.problem.status);
  return outcome.request.authority;
}

TEST(HttpParser, HostIsOneNameOrAddress) {
  for (const char* host : {"h", "h:", "h:80", "my_service.internal:7171", "h.", "127.0.0.1:1",
                           "[::1]", "[::1]:65535", "[2001:DB8::1]:1", "[::ffff:127.0.0.1]"}) {
    EXPECT_EQ(addressed("/", host), host);
  }
  for (const char* host : {"",           "a b",     "a, b",
                           "a,b",        "a/b",     "http://a",
                           "user@a",     "a?b",     "a#b",
                           "a\\b",       "a%41",    "a:x",
                           "a:+1",       "a:65536", "a:80:80",
                           ":80",        ".",       ".a",
                           "a..b",       "[::1",    "::1",
                           "[::1].evil", "[::1]x",  "[127.0.0.1]",
                           "[]",         "[v1.a]",  "[fe80::1%25eth0]",
                           "\xc3\xa4",   "\"a\"",   "*"}) {
    EXPECT_EQ(addressed("/", host), "400") << host;
  }
}

// RFC 9112: an absolute target says who is asked; its sender repeats it in Host.
TEST(HttpParser, AnAbsoluteTargetAndHostSayTheSame) {
  EXPECT_EQ(addressed("http://h:80/a", "h:80"), "h:80");
  EXPECT_EQ(addressed("HTTPS://H", "h"), "H");
  EXPECT_EQ(addressed("http://h?q=/a", "h"), "h");
  EXPECT_EQ(addressed("http://evil.example/a", "localhost"), "400");
  EXPECT_EQ(addressed("http://u@h/a", "h"), "400");
  EXPECT_EQ(addressed("http:///a", "h"), "400");
  EXPECT_EQ(addressed("ftp://h/a", "h"), "400");
  const Outcome asked = feed("GET http://h?q=/a HTTP/1.1\r\nHost: h\r\n\r\n", 1000);
  EXPECT_TRUE(asked.request.path.empty());
  EXPECT_EQ(asked.request.query_value("q"), "/a");
  EXPECT_EQ(feed("GET http://h/ HTTP/1.0\r\n\r\n", 1000).request.authority, "h");
  EXPECT_EQ(feed("GET / HTTP/1.0\r\n\r\n", 1000).progress, Progress::kRequest);
  EXPECT_EQ(feed("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 1000).progress, Progress::kBroken);
}

TEST(HttpParser, LimitsHold) {
  const ParserLimits limits{.header_bytes_max = 100, .fields_max = 3, .body_bytes_max = 10};
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\n";
  EXPECT_EQ(feed(head + "Content-Length: 11\r\n\r\n", 1000, limits).problem.status, 413U);
  EXPECT_EQ(feed(head + "Transfer-Encoding: chunked\r\n\r\nb\r\n12345678901\r\n", 1000, limits)
                .problem.status,
            413U);
  EXPECT_EQ(feed(head + "X: " + std::string(200, 'x'), 1000, limits).problem.status, 431U);
  EXPECT_EQ(feed(head + "X: " + std::string(200, 'x') + "\r\n\r\n", 1, limits).problem.status,
            431U);
  EXPECT_EQ(feed(head + "A: 1\r\nB: 2\r\nC: 3\r\n\r\n", 1000, limits).problem.status, 431U);
}

TEST(HttpMessage, DatesAreThoseOfRfc9110) {
  EXPECT_EQ(date_text(784'111'777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date_text(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_TRUE(date_now().ends_with(" GMT"));
}

TEST(HttpMessage, ResponsesAreFramed) {
  Response response;
  response.status = 201;
  response.body = "{}";
  EXPECT_EQ(text_of(response, Framing::kWhole, true, false),
            "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_EQ(text_of(response, Framing::kWhole, false, true),
            "HTTP/1.1 201 Created\r\nContent-Length: 2\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(text_of(response, Framing::kChunked, true, false),
            "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(chunk_of("0123456789abcdef"), "10\r\n0123456789abcdef\r\n");
  EXPECT_EQ(chunk_of(""), "0\r\n\r\n");
}

}  // namespace
}  // namespace hapax::http
