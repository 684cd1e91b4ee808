#include "webhook/exchange.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include <curl/curl.h>

#include "base/format.h"
#include "webhook/renamed_url.h"

namespace hapax::webhook {
namespace {

using base::format;

constexpr std::size_t kUrlBytesMax = 8 * 1024;

constexpr std::string_view kMethods[] = {"POST", "PUT", "PATCH", "DELETE", "GET", "OPTIONS"};

// The framing and the connection are the sender's own; a header that speaks of them could make two
// requests out of one.
constexpr std::string_view kOwnHeaders[] = {
    "connection", "content-length",      "expect",           "host",
    "keep-alive", "proxy-authorization", "proxy-connection", "te",
    "trailer",    "transfer-encoding",   "upgrade"};

Error invalid(std::string detail) { return {Errc::kInvalidArgument, std::move(detail)}; }

bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

bool is_own_header(std::string_view name) {
  return std::ranges::any_of(kOwnHeaders, [&](std::string_view own) {
    return std::ranges::equal(own, name, {}, {}, [](char c) { return lower(c); });
  });
}

Status check_header(std::string_view name, std::string_view value) {
  if (!is_token(name)) return invalid("a header's name is not a token of HTTP");
  if (is_own_header(name)) {
    return invalid(format("header '{}' is set by the sender itself; remove it", name));
  }
  const bool plain = std::ranges::none_of(value, [](char c) { return is_control(c) && c != '\t'; });
  if (!plain) return invalid(format("the value of header '{}' has control characters", name));
  return Ok{};
}

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
struct FreeText {
  void operator()(char* text) const { curl_free(text); }
};

// Empty: the URL has no such part.
std::string part(const CURLU* url, CURLUPart which, unsigned flags) {
  char* found = nullptr;
  if (curl_url_get(const_cast<CURLU*>(url), which, &found, flags) != CURLUE_OK) return {};
  const std::unique_ptr<char, FreeText> text(found);
  return text.get();
}

}  // namespace

// Read by libcurl's own parser: two parsers that disagree about where a host ends are a hole.
Result<std::string> origin_of(const std::string& url) {
  if (url.size() > kUrlBytesMax) return invalid("the URL is longer than 8 KiB");
  // Bytes beyond ASCII would need a punycode host or escapes; the declaration must say which.
  const bool plain = std::ranges::none_of(url, [](char c) {
    return is_control(c) || c == ' ' || static_cast<unsigned char>(c) > 0x7e;
  });
  if (!plain) return invalid("the URL has control characters, spaces or bytes outside ASCII");
  if (url.find('#') != std::string::npos) return invalid("the URL has a fragment ('#')");
  if (url.find('\\') != std::string::npos) return invalid("the URL has a backslash");
  const std::unique_ptr<CURLU, FreeUrl> parsed(curl_url());
  const CURLUcode bad = curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), CURLU_PATH_AS_IS);
  if (bad != CURLUE_OK) {
    return invalid(format("the URL is not one that can be sent to: {}", curl_url_strerror(bad)));
  }
  const std::string scheme = lower(part(parsed.get(), CURLUPART_SCHEME, 0));
  if (scheme != "http" && scheme != "https") {
    return invalid(format("scheme '{}' of the URL is neither http nor https", scheme));
  }
  // libcurl forgives "http:/host" and "http:///host"; others read them differently.
  const std::string_view rest = std::string_view(url).substr(scheme.size());
  if (!rest.starts_with("://") || rest.starts_with(":///")) {
    return invalid("the URL does not have exactly two slashes before its host");
  }
  const std::string_view authority = rest.substr(3, rest.substr(3).find_first_of("/?"));
  if (authority.find('@') != std::string_view::npos) {
    return invalid("the URL names a user; put credentials into headers");
  }
  const std::string host = lower(part(parsed.get(), CURLUPART_HOST, 0));
  if (host.empty()) return invalid("the URL has no host");
  return format("{}://{}:{}", scheme, host, part(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
}

Status check_request(const SendRequest& request) {
  HAPAX_CHECK(origin_of(request.url));
  return check_besides_url(request);
}

Status check_besides_url(const SendRequest& request) {
  if (std::ranges::find(kMethods, request.method) == std::end(kMethods)) {
    return invalid("the method is not one of POST, PUT, PATCH, DELETE, GET, OPTIONS");
  }
  for (const auto& [name, value] : request.headers) HAPAX_CHECK(check_header(name, value));
  if (!request.tls.server_name.empty() && !is_server_name(request.tls.server_name)) {
    return invalid("the server name for TLS is not the name of a host");
  }
  if (request.connect_timeout.count() <= 0 || request.total_timeout.count() <= 0) {
    return invalid("a timeout is not longer than zero");
  }
  if (request.guarded && !request.proxy.url.empty() && !request.proxy.filters) {
    return invalid(
        "the address guard cannot judge addresses behind a proxy; the operator must say that the "
        "proxy filters");
  }
  return Ok{};
}

std::string_view word_of(SendEnding ending) {
  constexpr std::array<std::string_view, 3> kWords{"answered", "not_sent", "unknown"};
  return kWords[static_cast<std::size_t>(ending)];
}

std::string_view word_of(SendCause cause) {
  constexpr std::array<std::string_view, 11> kWords{"none",     "invalid", "guard",   "name",
                                                    "connect",  "tls",     "timeout", "broken",
                                                    "protocol", "stopped", "withheld"};
  return kWords[static_cast<std::size_t>(cause)];
}

}  // namespace hapax::webhook
