#include "rest/cross_site.h"

#include <string>
#include <string_view>

#include "http/authority.h"
#include "net/address.h"

namespace hapax::rest {

namespace {

Error sent_by_another(const std::string& how) {
  return Error{Errc::kForbidden,
               how + "; pages of other sites may not use a server that knows no credentials"};
}

bool is_this_machine(std::string_view authority) {
  const auto host = http::host_of(authority);
  if (!host) return false;
  if (*host == "localhost" || host->ends_with(".localhost")) return true;
  const auto address = net::parse_address(*host + ":1");
  return address && address->loopback();
}

// Pages do not choose it, and browsers send it once.
bool is_own_site(std::string_view site) {
  return http::same_name(site, "same-origin") || http::same_name(site, "none");
}

// What stands behind "http://" or "https://".
std::string_view host_of_origin(std::string_view origin) {
  const std::size_t slashes = origin.find("://");
  return slashes == std::string_view::npos ? std::string_view() : origin.substr(slashes + 3);
}

}  // namespace

Status check_site(const http::Request& request, Hosts hosts) {
  const http::Fields& fields = request.fields;
  for (const std::string_view name : {"Sec-Fetch-Site", "Origin"}) {
    if (fields.count(name) > 1) return sent_by_another(std::string(name) + " is there twice");
  }
  const std::string_view site = fields.get("Sec-Fetch-Site");
  if (fields.has("Sec-Fetch-Site") && !is_own_site(site)) {
    return sent_by_another("Sec-Fetch-Site is " + std::string(site));
  }
  const bool from_page = fields.has("Origin");
  if (from_page && !http::same_name(host_of_origin(fields.get("Origin")), request.authority)) {
    return sent_by_another("Origin and Host differ");
  }
  const bool named = !request.authority.empty() || fields.has("Host");
  if (hosts == Hosts::kThisMachine && named && !is_this_machine(request.authority)) {
    return sent_by_another("Host is not a name of this machine, on which alone it listens");
  }
  return Ok{};
}

}  // namespace hapax::rest
