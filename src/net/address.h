// "host:port" as people write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <hapax/result.h>

namespace hapax::net {

struct Address {
  std::string host;  // a numeric IPv4 or IPv6 address
  std::uint16_t port = 0;

  [[nodiscard]] bool loopback() const;
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Address&, const Address&) = default;
};

// "127.0.0.1:80", "[::1]:80", ":80" (every interface), "localhost:80". Names of other machines are
// not looked up: one listens on addresses.
[[nodiscard]] Result<Address> parse_address(std::string_view text);

}  // namespace hapax::net
