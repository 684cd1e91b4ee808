#include "http/parser.h"

#include <algorithm>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/format.h"
#include "http/authority.h"

namespace hapax::http {

namespace beast = boost::beast::http;

namespace {

constexpr std::string_view kEnd = "\r\n\r\n";

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

// Where the header ends, or npos.
std::size_t header_size(std::string_view bytes) {
  const std::size_t end = bytes.find(kEnd);
  return end == std::string_view::npos ? end : end + kEnd.size();
}

// Forms that parsers are known to disagree on.
std::string_view ambiguity(std::string_view header) {
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i] == '\0') return "a zero byte in the header";
    if (header[i] == '\n' && (i == 0 || header[i - 1] != '\r')) return "a line ends without CR";
    if (header[i] == '\r' && (i + 1 == header.size() || header[i + 1] != '\n')) {
      return "a CR that ends no line";
    }
    const bool folds = header[i] == '\n' && i + 1 < header.size() &&
                       (header[i + 1] == ' ' || header[i + 1] == '\t');
    if (folds) return "a header field is folded over several lines";
  }
  return {};
}

// Both say who is asked: what they say must be understood, and be the same.
std::string_view misaddressed(const Request& request) {
  const bool named = request.fields.has("Host");
  const std::string_view host = request.fields.get("Host");
  if (named && !host_of(host)) return "Host is not a name or an address, with a port or without";
  if (!named && request.authority.empty()) return {};
  if (!host_of(request.authority)) return "the target names no host that can be understood";
  if (named && !same_name(host, request.authority)) return "the target and Host differ";
  return {};
}

// Whether the request line ends in a version of HTTP, be it one that nobody has written.
bool names_version(std::string_view header) {
  const std::string_view line = header.substr(0, header.find('\r'));
  const std::string_view version = line.substr(line.rfind(' ') + 1);
  const auto digit = [&](std::size_t at) { return version[at] >= '0' && version[at] <= '9'; };
  return version.size() == 8 && version.starts_with("HTTP/") && digit(5) && version[6] == '.' &&
         digit(7);
}

}  // namespace

struct Parser::Beast {
  beast::request_parser<beast::string_body> parser;
};

Parser::Parser(const ParserLimits& limits) : limits_(limits), beast_(std::make_unique<Beast>()) {
  beast_->parser.header_limit(static_cast<std::uint32_t>(limits.header_bytes_max));
  beast_->parser.body_limit(limits.body_bytes_max);
}

Parser::~Parser() = default;

Progress Parser::put(std::string_view bytes, std::size_t& used) {
  used = 0;
  if (header_done_) return put_body(bytes, used);
  // An empty line or two before a request are left over from the one before.
  if (!started_) {
    while (bytes.starts_with("\r\n") && skipped_ < kEnd.size()) {
      bytes.remove_prefix(2);
      used += 2;
      skipped_ += 2;
    }
    if (bytes == "\r" && skipped_ < kEnd.size()) return Progress::kMore;  // Half of one, perhaps.
  }
  if (bytes.empty()) return Progress::kMore;
  started_ = true;
  std::size_t taken = 0;
  const Progress progress = put_header(bytes, taken);
  used += taken;
  return progress;
}

Progress Parser::put_header(std::string_view bytes, std::size_t& used) {
  const std::size_t size = header_size(bytes.substr(0, limits_.header_bytes_max + kEnd.size()));
  if (size == std::string_view::npos) {
    if (bytes.size() <= limits_.header_bytes_max) return Progress::kMore;
    return broken(431,
                  base::format("the header is larger than {} bytes", limits_.header_bytes_max));
  }
  const std::string_view header = bytes.substr(0, size);
  if (const std::string_view why = ambiguity(header); !why.empty()) {
    return broken(400, std::string(why));
  }
  boost::system::error_code error;
  std::size_t fed = 0;
  while (!error && !beast_->parser.is_header_done()) {
    fed += beast_->parser.put(boost::asio::buffer(header.substr(fed)), error);
  }
  if (error == beast::error::body_limit) return too_large();
  if (error == beast::error::bad_version && names_version(header)) {
    return broken(505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
  }
  if (error && error != beast::error::need_more) {
    return broken(400, "the request is not HTTP/1.1: " + error.message());
  }
  if (!beast_->parser.is_header_done()) return broken(400, "the header is not complete");
  used = size;
  header_done_ = true;
  return accept_header();
}

Progress Parser::accept_header() {
  const auto& message = beast_->parser.get();
  request_.method = view(message.method_string());
  request_.target = view(message.target());
  request_.version = message.version();
  request_.keep_alive = message.keep_alive();
  for (const auto& field : message) {
    request_.fields.add(view(field.name_string()), view(field.value()));
  }
  const Fields& fields = request_.fields;
  if (fields.list().size() > limits_.fields_max) {
    return broken(431, base::format("more than {} header fields", limits_.fields_max));
  }
  if (fields.count("Content-Length") > 1) return broken(400, "Content-Length more than once");
  const std::string_view length = fields.get("Content-Length");
  if (length.find_first_not_of("0123456789") != std::string_view::npos) {
    return broken(400, "Content-Length is not one number");
  }
  if (length.size() > 1 && length.front() == '0') {  // To some it would be octal.
    return broken(400, "Content-Length begins with 0");
  }
  if (const std::size_t encodings = fields.count("Transfer-Encoding"); encodings != 0) {
    if (encodings > 1) return broken(400, "Transfer-Encoding more than once");
    if (fields.has("Content-Length")) {
      return broken(400, "both Content-Length and Transfer-Encoding");
    }
    if (request_.version == 10) return broken(400, "Transfer-Encoding in HTTP/1.0");
    if (!same_name(fields.get("Transfer-Encoding"), "chunked")) {
      return broken(501, "the only transfer encoding understood is chunked");
    }
    chunks_.emplace(limits_.body_bytes_max);
  }
  if (const std::size_t hosts = fields.count("Host");
      hosts > 1 || (hosts == 0 && request_.version == 11)) {
    return broken(400, "HTTP/1.1 needs the Host field exactly once");
  }
  if (!split_target(request_)) return broken(400, "the target is not a path with good escapes");
  if (const std::string_view why = misaddressed(request_); !why.empty()) {
    return broken(400, std::string(why));
  }
  const std::string_view expectation = fields.get("Expect");
  if (!expectation.empty() && !same_name(expectation, "100-continue")) {
    return broken(417, "the only expectation understood is 100-continue");
  }
  expects_continue_ = !expectation.empty();
  return Progress::kHeader;
}

bool Parser::body_follows() const {
  const std::string_view length = request_.fields.get("Content-Length");
  return chunks_.has_value() || (!length.empty() && length != "0");
}

Progress Parser::put_chunks(std::string_view bytes, std::size_t& used) {
  switch (chunks_->put(bytes, used)) {
    case Chunked::kMore:
      return Progress::kMore;
    case Chunked::kWhole:
      request_.body = std::move(chunks_->body());
      return Progress::kRequest;
    case Chunked::kTooLarge:
      return too_large();
    case Chunked::kBroken:
      break;
  }
  return broken(400, std::string(chunks_->problem()));
}

Progress Parser::put_body(std::string_view bytes, std::size_t& used) {
  if (chunks_) return put_chunks(bytes, used);
  boost::system::error_code error;
  while (!error && !beast_->parser.is_done() && used < bytes.size()) {
    used += beast_->parser.put(boost::asio::buffer(bytes.substr(used)), error);
  }
  if (error == beast::error::body_limit) return too_large();
  if (error && error != beast::error::need_more) {
    return broken(400, "the body is broken: " + error.message());
  }
  if (!beast_->parser.is_done()) return Progress::kMore;
  request_.body = std::move(beast_->parser.get().body());
  return Progress::kRequest;
}

Progress Parser::too_large() {
  broken(413, base::format("the body is larger than {} bytes", limits_.body_bytes_max));
  problem_.code = Errc::kLimitExceeded;
  return Progress::kBroken;
}

Progress Parser::broken(unsigned status, std::string detail) {
  problem_ = {status, std::move(detail)};
  return Progress::kBroken;
}

}  // namespace hapax::http
