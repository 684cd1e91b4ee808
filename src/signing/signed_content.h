// What signatures of Standard Webhooks are made over: id.timestamp.body
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>

namespace hapax::signing {

inline constexpr std::size_t kWebhookIdBytesMax = 255;

// V1: an id with a full stop could lend a piece of itself to the timestamp, and the signature of
// one request would fit another. Visible ASCII besides, because it is a header field.
[[nodiscard]] constexpr bool is_webhook_id(std::string_view id) {
  if (id.empty() || id.size() > kWebhookIdBytesMax) return false;
  for (const char c : id) {
    if (c <= ' ' || c > '~' || c == '.') return false;
  }
  return true;
}

[[nodiscard]] inline Error unfit_webhook_id() {
  return {Errc::kInvalidArgument,
          "a webhook-id has 1 to 255 visible ASCII characters and no full stop"};
}

[[nodiscard]] inline std::vector<std::string_view> signed_content(
    std::string_view id, std::string_view timestamp, std::span<const std::string_view> body) {
  std::vector<std::string_view> pieces{id, ".", timestamp, "."};
  pieces.insert(pieces.end(), body.begin(), body.end());
  return pieces;
}

[[nodiscard]] inline std::string in_one_piece(std::span<const std::string_view> pieces) {
  std::size_t size = 0;
  for (const std::string_view piece : pieces) size += piece.size();
  std::string whole;
  whole.reserve(size);
  for (const std::string_view piece : pieces) whole += piece;
  return whole;
}

}  // namespace hapax::signing
