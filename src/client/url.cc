#include "client/url.h"

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include "client/escape.h"
#include "http/authority.h"

namespace hapax::client {

namespace {

namespace urls = boost::urls;

Error bad_url(std::string_view text, std::string_view why) {
  return Error{Errc::kInvalidArgument, "'" + std::string(text) + "' is no address of a server: " +
                                           std::string(why) + "; as in http://127.0.0.1:7171"};
}

// What is wrong with a URL of RFC 3986 as the address of a server; empty if nothing is.
std::string_view flaw_of(const urls::url_view& url) {
  if (url.has_userinfo() || url.has_fragment()) return "it may not have a user or a fragment";
  if (url.encoded_host().empty()) return "the host is missing";
  // Boost 1.81 takes "http://a:x" for the host a and the path x.
  const bool path_follows = url.encoded_path().empty() || url.encoded_path().starts_with('/');
  if (!path_follows || (url.has_port() && url.port_number() == 0)) {
    return "the port is no number from 1 to 65535";
  }
  if (!http::host_of(url.encoded_host_and_port())) return "the host is not a name or an address";
  return {};
}

}  // namespace

std::string Url::authority() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + port;
}

std::string Url::text() const { return (tls ? "https://" : "http://") + authority() + prefix; }

namespace {

Result<urls::url_view> parsed_url(std::string_view text) {
  if (!text.starts_with("https://") && !text.starts_with("http://")) {
    return bad_url(text, "it begins with neither http:// nor https://");
  }
  if (!is_word(text)) return bad_url(text, "spaces and what is not ASCII are written as %XX");
  const auto parsed = urls::parse_uri(text);
  if (!parsed) return bad_url(text, "it is not written as RFC 3986 wants it");
  if (const std::string_view flaw = flaw_of(*parsed); !flaw.empty()) return bad_url(text, flaw);
  return *parsed;
}

Url server_of(const urls::url_view& parsed) {
  Url url;
  url.tls = parsed.scheme() == "https";
  url.host = parsed.host_address();
  url.port = parsed.has_port() ? std::to_string(parsed.port_number()) : url.tls ? "443" : "80";
  return url;
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
  HAPAX_TRY(const urls::url_view parsed, parsed_url(text));
  if (parsed.has_query()) return bad_url(text, "it may have a host, a port and a path only");
  Url url = server_of(parsed);
  url.prefix = std::string_view(parsed.encoded_path());
  while (url.prefix.ends_with('/')) url.prefix.pop_back();
  return url;
}

Result<EndpointUrl> parse_endpoint_url(std::string_view text) {
  HAPAX_TRY(const urls::url_view parsed, parsed_url(text));
  EndpointUrl url{server_of(parsed), std::string(std::string_view(parsed.encoded_path()))};
  if (url.target.empty()) url.target = "/";
  if (parsed.has_query()) url.target.append("?").append(std::string_view(parsed.encoded_query()));
  return url;
}

}  // namespace hapax::client
