// Reads one HTTP/1.1 response, for clients.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <hapax/result.h>

#include "http/message.h"

namespace hapax::http {

class ResponseReader {
 public:
  explicit ResponseReader(std::size_t body_bytes_max);
  ~ResponseReader();
  ResponseReader(const ResponseReader&) = delete;
  ResponseReader& operator=(const ResponseReader&) = delete;

  // Whether the response is complete now. kUnsupportedMedia: it is not HTTP.
  [[nodiscard]] Result<bool> put(std::string_view bytes);
  // The peer sends no more: that ends a body without a length. kUnavailable: something is missing.
  [[nodiscard]] Status end();

  // REQUIRES: it is complete.
  [[nodiscard]] Response take();
  [[nodiscard]] bool keep_alive() const;

 private:
  struct Beast;
  std::unique_ptr<Beast> beast_;
  std::string waiting_;  // came and was not taken yet
};

}  // namespace hapax::http
