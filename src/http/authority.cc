#include "http/authority.h"

#include <algorithm>

#include "base/words.h"
#include "net/address.h"

namespace hapax::http {

namespace {

constexpr std::size_t kNameMax = 255;

bool is_port(std::string_view text) {
  if (text.empty()) return true;  // RFC 3986: "host:" has none.
  if (text.find_first_not_of("0123456789") != std::string_view::npos || text.size() > 5)
    return false;
  return std::stoul(std::string(text)) <= 65'535;
}

bool is_ip6(std::string_view text) {
  const bool plain = text.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
  if (!plain || text.find(':') == std::string_view::npos) return false;
  return net::parse_address("[" + std::string(text) + "]:1").ok();
}

// IPv4 addresses are of the same letters. The dot at the end of a full name may be there.
bool is_host_name(std::string_view text) {
  if (text.empty() || text.size() > kNameMax || text.starts_with('.')) return false;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  };
  return std::all_of(text.begin(), text.end(), fits) && text.find("..") == std::string_view::npos;
}

}  // namespace

std::optional<std::string> host_of(std::string_view authority) {
  const bool brackets = authority.starts_with('[');
  const std::size_t end =
      brackets ? authority.find(']') : std::min(authority.find(':'), authority.size());
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view host = authority.substr(0, brackets ? end + 1 : end);
  const std::string_view rest = authority.substr(host.size());
  if (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1)))) return std::nullopt;
  if (!(brackets ? is_ip6(host.substr(1, host.size() - 2)) : is_host_name(host)))
    return std::nullopt;
  return base::lower(host);
}

}  // namespace hapax::http
