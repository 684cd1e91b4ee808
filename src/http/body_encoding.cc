#include "http/body_encoding.h"

#include <utility>

#include "inflate/inflate.h"

namespace hapax::http {

Status decode_body(Request& request, std::size_t bytes_max) {
  const std::size_t fields = request.fields.count("Content-Encoding");
  const std::string_view name = request.fields.get("Content-Encoding");
  if (fields == 0 || same_name(name, "identity")) return Ok{};
  const auto encoding = inflate::encoding_of(name);
  if (fields > 1 || !encoding) {
    return Error{Errc::kUnsupportedMedia,
                 "Content-Encoding: expected gzip or zstd, once, got '" + std::string(name) + "'"};
  }
  HAPAX_TRY(std::string body,
            inflate::inflate(*encoding, request.body, inflate::Limits{.bytes_max = bytes_max}));
  request.body = std::move(body);
  return Ok{};
}

}  // namespace hapax::http
