// Reads HTTP/1.1 requests, strictly: what two programs could understand differently is refused, so
// that nothing can be smuggled past a proxy in front of us.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/result.h>

#include "http/chunks.h"
#include "http/message.h"

namespace hapax::http {

struct ParserLimits {
  std::size_t header_bytes_max = std::size_t{32} << 10;
  std::size_t fields_max = 100;
  std::size_t body_bytes_max = std::size_t{48} << 20;
};

enum class Progress : std::uint8_t {
  kMore,     // give it more
  kHeader,   // the header is complete: request() has all but the body; go on
  kRequest,  // complete
  kBroken,   // answer problem() and close
};

struct Problem {
  unsigned status = 400;
  std::string detail;
  std::optional<Errc> code{};  // if the failure has one; it gives the status, too
};

// One request; make another for the next.
class Parser {
 public:
  explicit Parser(const ParserLimits& limits);
  ~Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  // `used` is how many of the bytes it took. Bytes it did not take come again.
  [[nodiscard]] Progress put(std::string_view bytes, std::size_t& used);

  [[nodiscard]] Request& request() { return request_; }
  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] bool started() const { return started_; }
  [[nodiscard]] bool expects_continue() const { return expects_continue_; }
  // Of a complete header: a body is still to come.
  [[nodiscard]] bool body_follows() const;

 private:
  struct Beast;

  Progress put_header(std::string_view bytes, std::size_t& used);
  Progress put_chunks(std::string_view bytes, std::size_t& used);
  Progress put_body(std::string_view bytes, std::size_t& used);
  Progress accept_header();
  Progress too_large();
  Progress broken(unsigned status, std::string detail);

  const ParserLimits limits_;
  std::unique_ptr<Beast> beast_;
  std::optional<ChunkReader> chunks_;
  Request request_;
  Problem problem_;
  std::size_t skipped_ = 0;  // bytes of empty lines before the request
  bool started_ = false;
  bool header_done_ = false;
  bool expects_continue_ = false;
};

}  // namespace hapax::http
