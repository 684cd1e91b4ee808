#include "client/url.h"

#include <algorithm>

#include "client/escape.h"

namespace hapax::client {

namespace {

bool is_port(std::string_view text) {
  const bool digits =
      !text.empty() && text.size() <= 5 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits && std::stoul(std::string(text)) - 1 < 65'535;
}

Error bad_url(std::string_view text, std::string_view why) {
  return Error{Errc::kInvalidArgument, "'" + std::string(text) + "' is no address of a server: " +
                                           std::string(why) + "; as in http://127.0.0.1:7171"};
}

}  // namespace

std::string Url::authority() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + port;
}

std::string Url::text() const { return (tls ? "https://" : "http://") + authority() + prefix; }

Result<Url> parse_url(std::string_view text) {
  Url url;
  std::string_view rest = text;
  url.tls = rest.starts_with("https://");
  if (!url.tls && !rest.starts_with("http://")) {
    return bad_url(text, "it begins with neither http:// nor https://");
  }
  rest.remove_prefix(url.tls ? 8 : 7);
  if (rest.find_first_of("?#@") != std::string_view::npos) {
    return bad_url(text, "it may have a host, a port and a path only");
  }
  if (!rest.empty() && !is_word(rest)) {
    return bad_url(text, "spaces and what is not ASCII are written as %XX");
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  url.prefix = rest.substr(slash);
  while (url.prefix.ends_with('/')) url.prefix.pop_back();
  rest = rest.substr(0, slash);
  const bool v6 = rest.starts_with('[');
  const std::size_t host_end = v6 ? rest.find(']') : std::min(rest.find(':'), rest.size());
  if (host_end == std::string_view::npos) return bad_url(text, "a ] is missing");
  url.host = v6 ? rest.substr(1, host_end - 1) : rest.substr(0, host_end);
  rest.remove_prefix(host_end + (v6 ? 1 : 0));
  if (url.host.empty()) return bad_url(text, "the host is missing");
  if (rest.empty()) {
    url.port = url.tls ? "443" : "80";
    return url;
  }
  url.port = rest.substr(1);
  if (rest.front() != ':' || !is_port(url.port)) {
    return bad_url(text, "the port is no number from 1 to 65535");
  }
  return url;
}

}  // namespace hapax::client
