// A URL whose host is to prove another name than its own, as libcurl wants to be told that: it
// proves the name in the URL, and is led to the host that was there.
#pragma once

#include <string>
#include <string_view>

namespace hapax::webhook {

struct RenamedUrl {
  std::string url;         // with the name in the place of the host
  std::string connect_to;  // for CURLOPT_CONNECT_TO
  std::string authority;   // of the URL as it was: the value of Host
};

// Whether it can be the name in a certificate: of a host, or an address of IPv4.
[[nodiscard]] bool is_server_name(std::string_view name);

// REQUIRES: an https URL that origin_of() accepts, and is_server_name(name).
[[nodiscard]] RenamedUrl renamed_url(std::string_view url, std::string_view name);

}  // namespace hapax::webhook
