// Forms that HTTP parsers are known to have disagreed on, mostly from the payloads collected by
// HTTP Garden. Each is refused, however it arrives, and the connection ends with it.
#include <string>

#include <gtest/gtest.h>

#include "http/parser.h"

namespace hapax::http {
namespace {

struct Form {
  std::string name;
  std::string bytes;
};

const std::string kPost = "POST / HTTP/1.1\r\nHost: h\r\n";
const std::string kGet = "GET / HTTP/1.1\r\nHost: h\r\n";

std::string length(const std::string& value) {
  return kPost + "Content-Length:" + value + "\r\n\r\n0123456789abcdef";
}
std::string encoding(const std::string& value) {
  return kPost + "Transfer-Encoding:" + value + "\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
}
std::string chunks(const std::string& body) {
  return kPost + "Transfer-Encoding: chunked\r\n\r\n" + body;
}
std::string field(const std::string& line) { return kGet + line + "\r\n\r\n"; }

const std::string kNul(1, '\0');

std::vector<Form> lengths() {
  return {
      {"length with underscore", length(" +1_0")},
      {"length in hex", length(" 0x10")},
      {"length with leading zero", length(" 010")},
      {"length empty", length("")},
      {"length of spaces", length("  ")},
      {"length with letters", length(" 1Z")},
      {"length negative", length(" -1")},
      {"length with plus", length(" +5")},
      {"length as list", length(" 5, 5")},
      {"length as list of one", length(" 5,")},
      {"length with inner space", length(" 1 0")},
      {"length beyond 64 bits", length(" 18446744073709551617")},
      {"length twice", length(" 5\r\nContent-Length: 6")},
      {"length twice, same", length(" 5\r\nContent-Length: 5")},
      {"length empty, then a number", length("\r\nContent-Length: 5")},
      {"length with vertical tab", length("\x0b"
                                          "5")},
      {"length with no-break space", length("\xa0"
                                            "5")},
      {"length before colon", kPost + "Content-Length : 5\r\n\r\nhello"},
      {"length with quotes", length(" \"5\"")},
  };
}

std::vector<Form> encodings() {
  return {
      {"encoding with comma", encoding(" ,chunked")},
      {"encoding with trailing comma", encoding(" chunked,")},
      {"encoding with no-break space", encoding(" \xa0"
                                                "chunked\xa0")},
      {"encoding unknown", encoding(" blegh")},
      {"encoding identity", encoding(" identity")},
      {"encoding empty", encoding("")},
      {"encoding twice", encoding(" chunked\r\nTransfer-Encoding: chunked")},
      {"encoding, then identity", encoding(" chunked\r\nTransfer-Encoding: identity")},
      {"encoding chunked twice in one", encoding(" chunked, chunked")},
      {"encoding with vertical tab", encoding("\x0b"
                                              "chunked")},
      {"encoding with parameter", encoding(" chunked;q=1")},
      {"encoding quoted", encoding(" \"chunked\"")},
      {"encoding and length", encoding(" chunked\r\nContent-Length: 5")},
      {"length and encoding", length(" 5\r\nTransfer-Encoding: chunked")},
      {"encoding before colon", kPost + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"},
      {"encoding in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
  };
}

std::vector<Form> chunk_forms() {
  return {
      {"chunk size with underscore", chunks("0_2e\r\n")},
      {"chunk size signed hex", chunks("-0x0\r\n\r\n")},
      {"chunk size with 0x", chunks("0x5\r\nhello\r\n0\r\n\r\n")},
      {"chunk size with plus", chunks("+5\r\nhello\r\n0\r\n\r\n")},
      {"chunk size with words", chunks("1these-bytes\r\nx\r\n0\r\n\r\n")},
      {"chunk size with leading space", chunks(" 5\r\nhello\r\n0\r\n\r\n")},
      {"chunk size with trailing space", chunks("5 \r\nhello\r\n0\r\n\r\n")},
      {"chunk size with trailing tab", chunks("5\t\r\nhello\r\n0\r\n\r\n")},
      {"chunk size empty", chunks("\r\nhello\r\n0\r\n\r\n")},
      {"chunk size of extension only", chunks(";x\r\nhello\r\n0\r\n\r\n")},
      {"chunk size beyond 64 bits", chunks("10000000000000005\r\nhello\r\n0\r\n\r\n")},
      {"chunk line ends with LF", chunks("5\nhello\r\n0\r\n\r\n")},
      {"chunk data ends with LF", chunks("5\r\nhello\n0\r\n\r\n")},
      {"chunk data ends with CR", chunks("5\r\nhello\rX0\r\n\r\n")},
      {"chunk data too long", chunks("5\r\nhelloX\r\n0\r\n\r\n")},
      {"chunk data without end", chunks("5\r\nhello0\r\n\r\n")},
      {"chunk with CR before extension", chunks("5\r;x=y\r\nhello\r\n0\r\n\r\n")},
      {"chunk extension with LF", chunks("5;x=\ny\r\nhello\r\n0\r\n\r\n")},
      {"chunk extension with CR", chunks("5;x=\ry\r\nhello\r\n0\r\n\r\n")},
      {"chunk extension with zero", chunks("5;x" + kNul + "\r\nhello\r\n0\r\n\r\n")},
      {"last chunk with LF", chunks("0\n\r\n")},
      {"trailer ends with LF", chunks("0\r\nT: x\n\r\n")},
      {"trailer folded", chunks("0\r\nT: x\r\n y\r\n\r\n")},
      {"trailer without colon", chunks("0\r\nT\r\n\r\n")},
  };
}

std::vector<Form> fields() {
  return {
      {"space before colon", field("X : y")},
      {"tab before colon", field("X\t: y")},
      {"first field begins with tab", "GET / HTTP/1.1\r\n\tHost: h\r\n\r\n"},
      {"first field begins with space", "GET / HTTP/1.1\r\n Host: h\r\n\r\n"},
      {"field without colon", field("X")},
      {"field without name", field(": x")},
      {"name with space", field("X Y: z")},
      {"name with zero", field("X" + kNul + ": y")},
      {"value with zero", field("X: y" + kNul + "z")},
      {"value with CR", field("X: y\rz")},
      {"value with LF", field("X: y\nZ: w")},
      {"name with brackets", field("X[]: y")},
      {"folded with space", field("X: y\r\n z")},
      {"folded with tab", field("X: y\r\n\tz")},
      {"folded to nothing", field("X: y\r\n ")},
      {"bare LF everywhere", "GET / HTTP/1.1\nHost: h\n\n\r\n\r\n"},
      {"header ends with LF", "GET / HTTP/1.1\r\nHost: h\r\n\nX: y\r\n\r\n"},
      {"host twice", field("Host: other")},
      {"host missing", "GET / HTTP/1.1\r\nX: y\r\n\r\n"},
  };
}

std::vector<Form> first_lines() {
  return {
      {"two spaces", "GET  / HTTP/1.1\r\nHost: h\r\n\r\n"},
      {"tab for space", "GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n"},
      {"space behind version", "GET / HTTP/1.1 \r\nHost: h\r\n\r\n"},
      {"no version", "GET /\r\nHost: h\r\n\r\n"},
      {"version in small letters", "GET / http/1.1\r\nHost: h\r\n\r\n"},
      {"version with zero", "GET / HTTP/01.1\r\nHost: h\r\n\r\n"},
      {"version with more digits", "GET / HTTP/1.10\r\nHost: h\r\n\r\n"},
      {"version 1.2", "GET / HTTP/1.2\r\nHost: h\r\n\r\n"},
      {"version 2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
      {"space in target", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n"},
      {"zero in target", "GET /a" + kNul + " HTTP/1.1\r\nHost: h\r\n\r\n"},
      {"another host in target", "GET http://other/ HTTP/1.1\r\nHost: h\r\n\r\n"},
      {"half an escape", "GET /%4 HTTP/1.1\r\nHost: h\r\n\r\n"},
      {"method with colon", "G:T / HTTP/1.1\r\nHost: h\r\n\r\n"},
      {"no method", " / HTTP/1.1\r\nHost: h\r\n\r\n"},
      {"authority form", "CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n"},
      {"asterisk form", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"},
  };
}

Progress feed(const std::string& bytes, std::size_t step) {
  Parser parser(ParserLimits{});
  std::size_t begin = 0;
  Progress progress = Progress::kMore;
  for (std::size_t end = 0; end < bytes.size() && progress == Progress::kMore;) {
    end = std::min(bytes.size(), end + step);
    do {
      std::size_t used = 0;
      progress = parser.put(std::string_view(bytes).substr(begin, end - begin), used);
      begin += used;
    } while (progress == Progress::kHeader);
  }
  return progress;
}

TEST(Smuggling, EveryFormIsRefusedHoweverItArrives) {
  for (const auto& forms : {lengths(), encodings(), chunk_forms(), fields(), first_lines()}) {
    for (const Form& form : forms) {
      for (const std::size_t step : {std::size_t{1}, std::size_t{13}, std::size_t{10'000}}) {
        EXPECT_EQ(feed(form.bytes, step), Progress::kBroken) << form.name << " by " << step;
      }
    }
  }
}

}  // namespace
}  // namespace hapax::http
