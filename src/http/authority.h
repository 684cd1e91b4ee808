// Who a request is addressed to: "host" or "host:port".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hapax::http {

// Nothing if it is not one name of DNS, one IPv4 address or one IPv6 address in brackets, with a
// port or without. What else a URI could name a host with (users, escapes, lists) is read
// differently by different programs. The host in small letters.
[[nodiscard]] std::optional<std::string> host_of(std::string_view authority);

}  // namespace hapax::http
