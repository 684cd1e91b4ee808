#include "webhook/guard.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/format.h"
#include "base/whole_number.h"

namespace hapax::webhook {
namespace {

using base::format;

constexpr std::size_t kV4At = 12;  // where an IPv4-mapped address holds its four bytes
constexpr int kMappedBits = 96;

using V4 = std::array<std::uint8_t, 4>;

constexpr IpAddress mapped(V4 v4) {
  IpAddress out;
  out.bytes[10] = 0xff;
  out.bytes[11] = 0xff;
  std::copy(v4.begin(), v4.end(), out.bytes.begin() + kV4At);
  return out;
}

constexpr IpRange v4(V4 first, int bits) { return {mapped(first), kMappedBits + bits}; }

// The address whose first 16-bit groups are these; the other groups are zero.
constexpr IpRange v6(std::array<std::uint16_t, 8> groups, int bits) {
  IpAddress out;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    out.bytes[2 * i] = static_cast<std::uint8_t>(groups[i] >> 8U);
    out.bytes[2 * i + 1] = static_cast<std::uint8_t>(groups[i]);
  }
  return {out, bits};
}

// A private address belongs to somebody's network, which the operator may open as a range. A
// forbidden one gives power over this machine or its cloud account.
enum class Tier : std::uint8_t { kPrivate, kForbidden };

struct SpecialRange {
  IpRange range;
  Tier tier;
  std::string_view words;
};

constexpr std::string_view kMetadata = "a metadata service of a cloud";

// The registries of IANA for special-purpose addresses (RFC 6890 and its updates), and the metadata
// services that lie outside link-local ranges. What several rows hold is judged by the hardest.
constexpr SpecialRange kSpecial[] = {
    {v4({100, 100, 100, 200}, 32), Tier::kForbidden, kMetadata},  // Alibaba Cloud
    {v4({168, 63, 129, 16}, 32), Tier::kForbidden, kMetadata},    // Azure; a public address
    {v4({192, 0, 0, 192}, 32), Tier::kForbidden, kMetadata},      // Oracle Cloud
    {v6({0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254}, 128), Tier::kForbidden, kMetadata},  // AWS
    {v6({0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254}, 128), Tier::kForbidden, kMetadata},   // Google
    {v6({0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42}, 128), Tier::kForbidden, kMetadata},    // Scaleway
    {v4({0, 0, 0, 0}, 8), Tier::kForbidden, "an address of this host"},
    {v4({127, 0, 0, 0}, 8), Tier::kForbidden, "a loopback address"},
    {v4({169, 254, 0, 0}, 16), Tier::kForbidden, "a link-local address"},
    {v4({224, 0, 0, 0}, 4), Tier::kForbidden, "a multicast address"},
    {v4({255, 255, 255, 255}, 32), Tier::kForbidden, "the broadcast address"},
    {v4({10, 0, 0, 0}, 8), Tier::kPrivate, "a private address"},
    {v4({172, 16, 0, 0}, 12), Tier::kPrivate, "a private address"},
    {v4({192, 168, 0, 0}, 16), Tier::kPrivate, "a private address"},
    {v4({100, 64, 0, 0}, 10), Tier::kPrivate, "an address behind a carrier's NAT"},
    {v4({192, 0, 0, 0}, 24), Tier::kPrivate, "an address reserved for IETF protocols"},
    {v4({192, 0, 2, 0}, 24), Tier::kPrivate, "an address for documentation"},
    {v4({198, 51, 100, 0}, 24), Tier::kPrivate, "an address for documentation"},
    {v4({203, 0, 113, 0}, 24), Tier::kPrivate, "an address for documentation"},
    {v4({192, 88, 99, 0}, 24), Tier::kPrivate, "a 6to4 relay"},
    {v4({198, 18, 0, 0}, 15), Tier::kPrivate, "an address for benchmarks"},
    {v4({240, 0, 0, 0}, 4), Tier::kPrivate, "a reserved address"},
    {v6({}, 128), Tier::kForbidden, "the unspecified address"},
    {v6({0, 0, 0, 0, 0, 0, 0, 1}, 128), Tier::kForbidden, "a loopback address"},
    {v6({0xfe80}, 10), Tier::kForbidden, "a link-local address"},
    {v6({0xff00}, 8), Tier::kForbidden, "a multicast address"},
    {v6({0x64, 0xff9b, 1}, 48), Tier::kPrivate, "a NAT64 address for local use"},
    {v6({0x100}, 64), Tier::kPrivate, "a discard-only address"},
    {v6({0x100, 0, 0, 1}, 64), Tier::kPrivate, "a dummy address"},
    {v6({0x2001, 0}, 32), Tier::kPrivate, "a Teredo address"},
    {v6({0x2001}, 23), Tier::kPrivate, "an address reserved for IETF protocols"},
    {v6({0x2001, 0xdb8}, 32), Tier::kPrivate, "an address for documentation"},
    {v6({0x2002}, 16), Tier::kPrivate, "a 6to4 address"},
    {v6({0x3fff}, 20), Tier::kPrivate, "an address for documentation"},
    {v6({0x5f00}, 16), Tier::kPrivate, "a segment routing address"},
    {v6({0xfc00}, 7), Tier::kPrivate, "a unique local address"},
    {v6({0xfec0}, 10), Tier::kPrivate, "a site-local address"},
};

constexpr IpRange kMapped = v6({0, 0, 0, 0, 0, 0xffff}, 96);
constexpr IpRange kNat64 = v6({0x64, 0xff9b}, 96);
constexpr IpRange kGlobalUnicast = v6({0x2000}, 3);
constexpr SpecialRange kNotGlobal{{}, Tier::kPrivate, "not a global unicast address"};

// Where an IPv6 address of some form hides an IPv4 address, to which a gateway may forward.
struct Disguise {
  IpRange range;
  std::array<std::size_t, 4> at;
  std::uint8_t flip = 0;  // xor of each byte
};

constexpr Disguise kDisguises[] = {
    {v6({}, 96), {12, 13, 14, 15}},                    // IPv4-compatible
    {v6({0, 0, 0, 0, 0xffff}, 96), {12, 13, 14, 15}},  // IPv4-translated
    {kNat64, {12, 13, 14, 15}},
    {v6({0x2001, 0}, 32), {4, 5, 6, 7}},            // Teredo: the server
    {v6({0x2001, 0}, 32), {12, 13, 14, 15}, 0xff},  // Teredo: the client
    {v6({0x2002}, 16), {2, 3, 4, 5}},               // 6to4
};

// The /48 for local use is cut as RFC 6052 says for that length, which leaves zeros at the end, or
// its owner uses a /96 of it.
constexpr IpRange kLocalNat64 = v6({0x64, 0xff9b, 1}, 48);
constexpr Disguise kLocalNat64Short{kLocalNat64, {6, 7, 9, 10}};
constexpr Disguise kLocalNat64Long{kLocalNat64, {12, 13, 14, 15}};

// ISATAP marks the interface part of an address under any prefix: 0:5efe or 200:5efe, then IPv4.
constexpr Disguise kIsatap{{}, {12, 13, 14, 15}};

bool is_isatap(const IpAddress& address) {
  const auto& at = address.bytes;
  return (at[8] == 0 || at[8] == 2) && at[9] == 0 && at[10] == 0x5e && at[11] == 0xfe;
}

IpAddress unmasked(const Disguise& disguise, const IpAddress& address) {
  V4 hidden{};
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    hidden[i] = address.bytes[disguise.at[i]] ^ disguise.flip;
  }
  return mapped(hidden);
}

// The hardest row that holds the address itself.
const SpecialRange* row_of(const IpAddress& address) {
  const SpecialRange* found = nullptr;
  for (const SpecialRange& row : kSpecial) {
    if (!row.range.holds(address)) continue;
    if (row.tier == Tier::kForbidden) return &row;
    if (found == nullptr) found = &row;
  }
  return found;
}

const SpecialRange* harder(const SpecialRange* one, const SpecialRange* other) {
  if (one == nullptr) return other;
  if (other == nullptr) return one;
  return other->tier > one->tier ? other : one;
}

const SpecialRange* special(const IpAddress& address) {
  const SpecialRange* found = row_of(address);
  if (kMapped.holds(address)) return found;
  const auto look_under = [&](const Disguise& disguise) {
    found = harder(found, row_of(unmasked(disguise, address)));
  };
  for (const Disguise& disguise : kDisguises) {
    if (disguise.range.holds(address)) look_under(disguise);
  }
  if (kLocalNat64.holds(address)) {
    const bool ends_in_zeros =
        std::all_of(address.bytes.begin() + 11, address.bytes.end(), [](auto b) { return b == 0; });
    look_under(ends_in_zeros ? kLocalNat64Short : kLocalNat64Long);
  }
  if (is_isatap(address)) look_under(kIsatap);
  const bool reachable = kGlobalUnicast.holds(address) || kNat64.holds(address);
  return found == nullptr && !reachable ? &kNotGlobal : found;
}

// True if every address of the range stays refused whatever range allows it.
bool useless(const IpRange& range) {
  return !range.single() && std::ranges::any_of(kSpecial, [&](const SpecialRange& row) {
    return row.tier == Tier::kForbidden && row.range.bits <= range.bits &&
           row.range.holds(range.first);
  });
}

Error not_a_range(std::string_view text) {
  return {Errc::kInvalidArgument,
          format("'{}' is not a range of addresses such as 10.0.0.0/8 or fd00::/8", text)};
}

}  // namespace

std::optional<IpAddress> parse_ip(std::string_view text) {
  const std::string plain(text.substr(0, text.find('%')));
  in6_addr wide{};
  if (::inet_pton(AF_INET6, plain.c_str(), &wide) == 1) {
    IpAddress out;
    std::memcpy(out.bytes.data(), &wide, sizeof wide);
    return out;
  }
  V4 narrow{};
  if (::inet_pton(AF_INET, plain.c_str(), narrow.data()) == 1) return mapped(narrow);
  return std::nullopt;
}

std::optional<IpAddress> ip_of(const sockaddr& address) {
  IpAddress out;
  if (address.sa_family == AF_INET6) {
    const auto& in = reinterpret_cast<const sockaddr_in6&>(address);
    std::memcpy(out.bytes.data(), &in.sin6_addr, out.bytes.size());
    return out;
  }
  if (address.sa_family != AF_INET) return std::nullopt;
  const auto& in = reinterpret_cast<const sockaddr_in&>(address);
  V4 narrow{};
  std::memcpy(narrow.data(), &in.sin_addr, narrow.size());
  return mapped(narrow);
}

bool IpRange::holds(const IpAddress& address) const {
  const auto whole = static_cast<std::size_t>(bits / 8);
  if (!std::equal(first.bytes.begin(), first.bytes.begin() + whole, address.bytes.begin())) {
    return false;
  }
  const int rest = bits % 8;
  if (rest == 0) return true;
  const int mask = 0xff00 >> rest;
  return ((first.bytes[whole] ^ address.bytes[whole]) & mask & 0xff) == 0;
}

Result<IpRange> parse_range(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view written = text.substr(0, slash);
  const auto first = parse_ip(written);
  if (!first || written.find('%') != std::string_view::npos) return not_a_range(text);
  IpRange range{*first, 128};
  if (slash != std::string_view::npos) {
    const bool narrow = written.find(':') == std::string_view::npos;
    const auto bits = base::whole_number(text.substr(slash + 1));
    if (!bits || *bits < 0 || *bits > (narrow ? 32 : 128)) return not_a_range(text);
    range.bits = static_cast<int>(*bits) + (narrow ? kMappedBits : 0);
  }
  IpRange rest = range;
  for (int bit = range.bits; bit < 128; ++bit) {
    rest.first.bytes[static_cast<std::size_t>(bit / 8)] &=
        static_cast<std::uint8_t>(~(0x80U >> static_cast<unsigned>(bit % 8)));
  }
  if (rest.first != range.first) {
    return Error{
        Errc::kInvalidArgument,
        format("'{}' has bits behind its prefix; write the first address of the range", text)};
  }
  return range;
}

Result<Guard> Guard::allowing(std::span<const std::string> ranges) {
  Guard guard;
  for (const std::string& text : ranges) {
    HAPAX_TRY(const IpRange range, parse_range(text));
    if (useless(range)) {
      return Error{
          Errc::kInvalidArgument,
          format("'{}' holds only {}; such addresses are allowed one by one, not as a range", text,
                 special(range.first)->words)};
    }
    guard.allowed_.push_back(range);
  }
  return guard;
}

std::optional<std::string_view> Guard::refusal(const IpAddress& address) const {
  const SpecialRange* row = special(address);
  if (row == nullptr) return std::nullopt;
  for (const IpRange& range : allowed_) {
    if ((range.single() || row->tier == Tier::kPrivate) && range.holds(address)) {
      return std::nullopt;
    }
  }
  return row->words;
}

}  // namespace hapax::webhook
