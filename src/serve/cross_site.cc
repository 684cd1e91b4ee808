#include "serve/cross_site.h"

#include <string>
#include <string_view>

#include "net/address.h"
#include "wire/words.h"

namespace hapax::serve {

namespace {

Error sent_by_another(const std::string& how) {
  return Error{Errc::kForbidden,
               how + "; pages of other sites may not use a server that knows no credentials"};
}

// Without the port.
std::string_view name_of_host(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool is_this_machine(std::string_view host) {
  const std::string name = wire::lower(name_of_host(host));
  if (name == "localhost" || name.ends_with(".localhost")) return true;
  const auto address = net::parse_address(name + ":1");
  return address && address->loopback();
}

// What stands behind "http://" or "https://".
std::string_view host_of_origin(std::string_view origin) {
  const std::size_t slashes = origin.find("://");
  return slashes == std::string_view::npos ? std::string_view() : origin.substr(slashes + 3);
}

}  // namespace

Status check_site(const http::Fields& fields, Hosts hosts) {
  const std::string_view site = fields.get("Sec-Fetch-Site");
  if (http::same_name(site, "cross-site") || http::same_name(site, "same-site")) {
    return sent_by_another("Sec-Fetch-Site is " + std::string(site));
  }
  const std::string_view host = fields.get("Host");
  const bool from_page = fields.has("Origin");
  if (from_page && !http::same_name(host_of_origin(fields.get("Origin")), host)) {
    return sent_by_another("Origin and Host differ");
  }
  if (hosts == Hosts::kThisMachine && fields.has("Host") && !is_this_machine(host)) {
    return sent_by_another("Host is not a name of this machine, on which alone it listens");
  }
  return Ok{};
}

}  // namespace hapax::serve
