// Reads one HTTP/1.1 response, for clients. The interim ones (1xx) before it are skipped.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/result.h>

#include "http/chunks.h"
#include "http/message.h"

namespace hapax::http {

class ResponseReader {
 public:
  explicit ResponseReader(std::size_t body_bytes_max);
  ~ResponseReader();
  ResponseReader(const ResponseReader&) = delete;
  ResponseReader& operator=(const ResponseReader&) = delete;

  // Whether the response is complete now. kUnsupportedMedia: it is not HTTP, or 101, or too many
  // are interim.
  [[nodiscard]] Result<bool> put(std::string_view bytes);
  // The peer sends no more: that ends a body without a length. kUnavailable: something is missing.
  [[nodiscard]] Status end();

  // REQUIRES: it is complete.
  [[nodiscard]] Response take();
  // Whether the next answer on the connection will be that to the next request: what came behind
  // this one answers nothing that was asked.
  [[nodiscard]] bool keep_alive() const;

 private:
  struct Beast;
  // How many of the bytes that wait they took.
  [[nodiscard]] Result<std::size_t> put_beast();
  [[nodiscard]] Result<std::size_t> put_chunks();
  [[nodiscard]] Status skip_interim();

  const std::size_t body_bytes_max_;
  std::unique_ptr<Beast> beast_;
  std::optional<ChunkReader> chunks_;
  bool complete_ = false;
  unsigned interim_ = 0;
  std::string waiting_;  // came and was not taken yet
};

}  // namespace hapax::http
