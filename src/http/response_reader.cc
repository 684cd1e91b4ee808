#include "http/response_reader.h"

#include <utility>

#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/format.h"

namespace hapax::http {

namespace {

// Each may be as long as a header, so together they are bounded, too.
constexpr unsigned kInterimMax = 16;

}  // namespace

struct ResponseReader::Beast {
  explicit Beast(std::size_t body_bytes_max) {
    parser.header_limit(64U << 10);
    parser.body_limit(body_bytes_max);
  }

  boost::beast::http::response_parser<boost::beast::http::string_body> parser;
};

ResponseReader::ResponseReader(std::size_t body_bytes_max)
    : body_bytes_max_(body_bytes_max), beast_(std::make_unique<Beast>(body_bytes_max)) {}

ResponseReader::~ResponseReader() = default;

Result<bool> ResponseReader::put(std::string_view bytes) {
  waiting_ += bytes;
  while (!waiting_.empty() && !complete_) {
    HAPAX_TRY(const std::size_t used, chunks_ ? put_chunks() : put_beast());
    waiting_.erase(0, used);
    if (used == 0 && !complete_) break;
  }
  return complete_;
}

// The head, and a body with a length or up to the end.
Result<std::size_t> ResponseReader::put_beast() {
  auto& parser = beast_->parser;
  boost::system::error_code error;
  const std::size_t used =
      parser.put(boost::beast::net::const_buffer(waiting_.data(), waiting_.size()), error);
  if (error && error != boost::beast::http::error::need_more) {
    return Error{Errc::kUnsupportedMedia, "the answer is not HTTP/1.1: " + error.message()};
  }
  if (parser.is_done()) {
    complete_ = true;
    HAPAX_CHECK(skip_interim());
  } else if (parser.is_header_done() && parser.chunked()) {
    chunks_.emplace(body_bytes_max_);
  }
  return used;
}

Result<std::size_t> ResponseReader::put_chunks() {
  std::size_t used = 0;
  const Chunked progress = chunks_->put(waiting_, used);
  if (progress == Chunked::kTooLarge) {
    return Error{Errc::kUnsupportedMedia,
                 base::format("the answer has more than {} bytes", body_bytes_max_)};
  }
  if (progress == Chunked::kBroken) {
    return Error{Errc::kUnsupportedMedia,
                 "the answer is not HTTP/1.1: " + std::string(chunks_->problem())};
  }
  complete_ = progress == Chunked::kWhole;
  return used;
}

// RFC 9110, 15.2: a 1xx may come before the answer, asked for or not. 101 would mean that what
// follows is another protocol, which nobody asked for.
Status ResponseReader::skip_interim() {
  const unsigned status = beast_->parser.get().result_int();
  if (status / 100 != 1) return Ok{};
  if (status == 101) {
    return Error{Errc::kUnsupportedMedia, "the answer is a change of protocol: HTTP 101"};
  }
  if (++interim_ > kInterimMax) {
    return Error{
        Errc::kUnsupportedMedia,
        base::format("more than {} interim answers, the last HTTP {}", kInterimMax, status)};
  }
  beast_ = std::make_unique<Beast>(body_bytes_max_);
  complete_ = false;
  return Ok{};
}

Status ResponseReader::end() {
  boost::system::error_code error;
  // Beast takes an end before the first byte for a whole answer.
  const bool may_end = !complete_ && !chunks_ && beast_->parser.is_header_done();
  if (may_end) beast_->parser.put_eof(error);
  complete_ = complete_ || (may_end && !error && beast_->parser.is_done());
  if (complete_) return Ok{};
  return Error{Errc::kUnavailable, "the connection ended before the answer did"};
}

Response ResponseReader::take() {
  auto message = beast_->parser.release();
  Response response;
  response.status = message.result_int();
  for (const auto& field : message) {
    response.fields.add({field.name_string().data(), field.name_string().size()},
                        {field.value().data(), field.value().size()});
  }
  response.body = std::move(chunks_ ? chunks_->body() : message.body());
  return response;
}

bool ResponseReader::keep_alive() const {
  return waiting_.empty() && beast_->parser.get().keep_alive();
}

}  // namespace hapax::http
