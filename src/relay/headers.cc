#include "relay/headers.h"

#include <charconv>
#include <cstddef>

#include "base/words.h"

namespace hapax::relay {

namespace {

// Takes one netstring off the front.
std::optional<std::string> take(std::string_view& text) {
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || digits >= text.size() || text.size() - digits - 1 < size) {
    return {};
  }
  std::string value(text.substr(digits + 1, size));
  text.remove_prefix(digits + 1 + size);
  return value;
}

}  // namespace

std::optional<Headers> headers_of(std::string_view text) {
  Headers headers;
  while (!text.empty()) {
    std::optional<std::string> name = take(text);
    std::optional<std::string> value = name ? take(text) : std::nullopt;
    if (!value) return {};
    headers.emplace_back(*std::move(name), *std::move(value));
  }
  return headers;
}

void take_replay_header(Outgoing& record) {
  std::erase_if(record.headers, [&record](const auto& header) {
    if (base::lower(header.first) != kReplayHeader) return false;
    const std::string& value = header.second;
    std::uint32_t replay = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), replay);
    if (error == std::errc{} && end == value.data() + value.size()) record.replay = replay;
    return true;
  });
}

std::string stored_reason(std::string_view reason) {
  constexpr std::size_t kReasonMax = 500;
  std::string text(reason.substr(0, kReasonMax));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

}  // namespace hapax::relay
