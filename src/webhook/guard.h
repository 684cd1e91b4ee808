// The address guard: which IP addresses a request of a tenant may reach.
//
// Pure. It judges addresses, never names: whoever connects hands in the address that it is about to
// connect to, so that a name that resolves differently the second time changes nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>

struct sockaddr;

namespace hapax::webhook {

// An IPv4 address is held as its IPv4-mapped IPv6 address, ::ffff:a.b.c.d: the two reach the same
// machine, so the guard must not tell them apart.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};

  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

// "192.0.2.1", "2001:db8::1", "fe80::1%eth0" (the zone is ignored). None: not an address in the
// one form that inet_pton takes.
[[nodiscard]] std::optional<IpAddress> parse_ip(std::string_view text);
// None: neither IPv4 nor IPv6.
[[nodiscard]] std::optional<IpAddress> ip_of(const sockaddr& address);

// The addresses whose first `bits` bits are those of `first`.
struct IpRange {
  IpAddress first;
  int bits = 128;

  [[nodiscard]] bool holds(const IpAddress& address) const;
  [[nodiscard]] bool single() const { return bits == 128; }
};

// "10.0.0.0/8", "fd00::/8", or one address. Bits behind the prefix must be zero.
[[nodiscard]] Result<IpRange> parse_range(std::string_view text);

class Guard {
 public:
  Guard() = default;  // allows global addresses only

  // What the operator allows besides. A range lifts the ban on private addresses in it. Loopback,
  // link-local, multicast and metadata addresses stay refused unless they are named one by one; a
  // range that holds nothing else is an error, because it would do nothing.
  [[nodiscard]] static Result<Guard> allowing(std::span<const std::string> ranges);

  // Why the address is refused, in words such as "a private address". None: it may be reached.
  [[nodiscard]] std::optional<std::string_view> refusal(const IpAddress& address) const;

 private:
  std::vector<IpRange> allowed_;
};

}  // namespace hapax::webhook
