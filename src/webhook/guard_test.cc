#include "webhook/guard.h"

#include <array>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace hapax::webhook {
namespace {

using ::testing::HasSubstr;

std::string judged(const Guard& guard, const char* address) {
  const auto ip = parse_ip(address);
  if (!ip) return "not an address";
  return std::string(guard.refusal(*ip).value_or("allowed"));
}

std::string judged(const char* address) { return judged(Guard(), address); }

Guard allowing(const std::vector<std::string>& ranges) { return *Guard::allowing(ranges); }

std::string refused_list(const std::vector<std::string>& ranges) {
  const auto guard = Guard::allowing(ranges);
  return guard ? "taken" : guard.error().detail;
}

TEST(Guard, AllowsGlobalAddresses) {
  for (const char* address : {"1.1.1.1",
                              "8.8.8.8",
                              "9.255.255.255",
                              "11.0.0.0",
                              "100.63.255.255",
                              "100.128.0.0",
                              "126.255.255.255",
                              "128.0.0.0",
                              "169.253.255.255",
                              "169.255.0.0",
                              "172.15.255.255",
                              "172.32.0.0",
                              "192.0.1.0",
                              "192.0.3.0",
                              "192.88.98.255",
                              "192.167.255.255",
                              "192.169.0.0",
                              "198.17.255.255",
                              "198.20.0.0",
                              "198.51.99.255",
                              "203.0.112.255",
                              "203.0.114.0",
                              "223.255.255.255",
                              "::ffff:8.8.8.8",
                              "64:ff9b::8.8.8.8",
                              "2001:200::1",
                              "2001:db7::1",
                              "2001:db9::1",
                              "2003::1",
                              "2606:4700:4700::1111",
                              "2a00:1450:4001:80b::200e",
                              "3ffe:ffff::1",
                              "2606:4700::5efe:8.8.8.8"}) {
    EXPECT_EQ(judged(address), "allowed") << address;
  }
}

TEST(Guard, RefusesEverySpecialRangeOfIpv4FromEndToEnd) {
  struct Row {
    const char* first;
    const char* last;
    const char* words;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"0.0.0.0", "0.255.255.255", "an address of this host"},
           {"10.0.0.0", "10.255.255.255", "a private address"},
           {"100.64.0.0", "100.127.255.255", "an address behind a carrier's NAT"},
           {"100.100.100.200", "100.100.100.200", "a metadata service of a cloud"},
           {"127.0.0.0", "127.255.255.255", "a loopback address"},
           {"168.63.129.16", "168.63.129.16", "a metadata service of a cloud"},
           {"169.254.0.0", "169.254.255.255", "a link-local address"},
           {"169.254.169.254", "169.254.170.2", "a link-local address"},
           {"172.16.0.0", "172.31.255.255", "a private address"},
           {"192.0.0.0", "192.0.0.255", "an address reserved for IETF protocols"},
           {"192.0.0.192", "192.0.0.192", "a metadata service of a cloud"},
           {"192.0.2.0", "192.0.2.255", "an address for documentation"},
           {"192.88.99.0", "192.88.99.255", "a 6to4 relay"},
           {"192.168.0.0", "192.168.255.255", "a private address"},
           {"198.18.0.0", "198.19.255.255", "an address for benchmarks"},
           {"198.51.100.0", "198.51.100.255", "an address for documentation"},
           {"203.0.113.0", "203.0.113.255", "an address for documentation"},
           {"224.0.0.0", "239.255.255.255", "a multicast address"},
           {"240.0.0.0", "255.255.255.254", "a reserved address"},
           {"255.255.255.255", "255.255.255.255", "the broadcast address"}}) {
    EXPECT_EQ(judged(row.first), row.words) << row.first;
    EXPECT_EQ(judged(row.last), row.words) << row.last;
  }
}

TEST(Guard, RefusesEverySpecialRangeOfIpv6FromEndToEnd) {
  struct Row {
    const char* first;
    const char* last;
    const char* words;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"::", "::", "the unspecified address"},
           {"::1", "::1", "a loopback address"},
           {"64:ff9b:1::808:808", "64:ff9b:1:ffff:ffff:ffff:808:808",
            "a NAT64 address for local use"},
           {"100::", "100::ffff:ffff:ffff:ffff", "a discard-only address"},
           {"100:0:0:1::", "100::1:ffff:ffff:ffff:ffff", "a dummy address"},
           {"2001:2::", "2001:1ff:ffff::", "an address reserved for IETF protocols"},
           {"2001:db8::", "2001:db8:ffff::", "an address for documentation"},
           {"3fff::", "3fff:fff:ffff::", "an address for documentation"},
           {"5f00::", "5f00:ffff::", "a segment routing address"},
           {"fc00::", "fdff:ffff::", "a unique local address"},
           {"fd00:ec2::254", "fd20:ce::254", "a metadata service of a cloud"},
           {"fd00:42::42", "fd00:42::42", "a metadata service of a cloud"},
           {"fe80::", "febf:ffff::", "a link-local address"},
           {"fe80::1%eth0", "fe80::1%1", "a link-local address"},
           {"fec0::", "feff:ffff::", "a site-local address"},
           {"ff00::", "ffff:ffff::", "a multicast address"},
           {"4000::1", "1fff::1", "not a global unicast address"},
           {"200::1", "e000::1", "not a global unicast address"}}) {
    EXPECT_EQ(judged(row.first), row.words) << row.first;
    EXPECT_EQ(judged(row.last), row.words) << row.last;
  }
}

TEST(Guard, SeesThroughTheDisguisesOfIpv4) {
  struct Row {
    const char* address;
    const char* words;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"::ffff:127.0.0.1", "a loopback address"},  // IPv4-mapped
           {"::ffff:10.1.2.3", "a private address"},
           {"::127.0.0.1", "a loopback address"},  // IPv4-compatible
           {"::8.8.8.8", "not a global unicast address"},
           {"::ffff:0:169.254.169.254", "a link-local address"},  // IPv4-translated
           {"64:ff9b::127.0.0.1", "a loopback address"},          // NAT64
           {"64:ff9b::192.168.0.1", "a private address"},
           {"64:ff9b:1::127.0.0.1", "a loopback address"},    // NAT64 for local use
           {"64:ff9b:1:7f00:0:100::", "a loopback address"},  // the same, after RFC 6052
           {"64:ff9b:1:2:3:4:10.0.0.1", "a NAT64 address for local use"},
           {"64:ff9b:1:808:8:800::", "a NAT64 address for local use"},
           {"2002:7f00:1::1", "a loopback address"},  // 6to4
           {"2002:808:808::1", "a 6to4 address"},
           {"2001:0:7f00:1::", "a loopback address"},               // Teredo: the server
           {"2001:0:808:808:0:0:80ff:fffe", "a loopback address"},  // and the client: 127.0.0.1
           {"2001:0:808:808:0:0:f7f7:f7f7", "a Teredo address"},
           {"2606:4700::5efe:127.0.0.1", "a loopback address"},  // ISATAP
           {"2606:4700::200:5efe:10.0.0.1", "a private address"}}) {
    EXPECT_EQ(judged(row.address), row.words) << row.address;
  }
}

TEST(Guard, ReadsAddressesInOneFormOnly) {
  for (const char* text : {"", "127.1", "0x7f.0.0.1", "2130706433", "0177.0.0.1", "127.0.0.1 ",
                           "1.2.3.4.5", "::g", "[::1]", "localhost"}) {
    EXPECT_EQ(judged(text), "not an address") << text;
  }
}

TEST(Guard, JudgesSocketAddresses) {
  sockaddr_in narrow{};
  narrow.sin_family = AF_INET;
  narrow.sin_addr.s_addr = htonl(0x0a000001);
  EXPECT_EQ(ip_of(reinterpret_cast<const sockaddr&>(narrow)), parse_ip("10.0.0.1"));
  sockaddr_in6 wide{};
  wide.sin6_family = AF_INET6;
  ASSERT_EQ(::inet_pton(AF_INET6, "fd00::7", &wide.sin6_addr), 1);
  EXPECT_EQ(ip_of(reinterpret_cast<const sockaddr&>(wide)), parse_ip("fd00::7"));
  sockaddr other{};
  other.sa_family = AF_UNIX;
  EXPECT_EQ(ip_of(other), std::nullopt);
}

TEST(Guard, LiftsPrivateRangesThatTheOperatorAllows) {
  const Guard guard = allowing({"10.1.0.0/16", "fd00:1::/32", "192.168.7.9"});
  EXPECT_EQ(judged(guard, "10.1.255.255"), "allowed");
  EXPECT_EQ(judged(guard, "::ffff:10.1.0.1"), "allowed");
  EXPECT_EQ(judged(guard, "10.2.0.0"), "a private address");
  EXPECT_EQ(judged(guard, "fd00:1::9"), "allowed");
  EXPECT_EQ(judged(guard, "fd00:2::9"), "a unique local address");
  EXPECT_EQ(judged(guard, "192.168.7.9"), "allowed");
  EXPECT_EQ(judged(guard, "192.168.7.8"), "a private address");
  EXPECT_EQ(judged(guard, "64:ff9b::10.1.0.1"), "a private address");
}

TEST(Guard, LiftsForbiddenAddressesOneByOneOnly) {
  const Guard guard = allowing({"0.0.0.0/0", "::/0", "127.0.0.1", "fe80::1"});
  EXPECT_EQ(judged(guard, "10.1.1.1"), "allowed");
  EXPECT_EQ(judged(guard, "fd00::1"), "allowed");
  EXPECT_EQ(judged(guard, "127.0.0.1"), "allowed");
  EXPECT_EQ(judged(guard, "127.0.0.2"), "a loopback address");
  EXPECT_EQ(judged(guard, "fe80::1"), "allowed");
  EXPECT_EQ(judged(guard, "169.254.169.254"), "a link-local address");
  EXPECT_EQ(judged(guard, "fd00:ec2::254"), "a metadata service of a cloud");
  EXPECT_EQ(judged(guard, "64:ff9b::127.0.0.1"), "a loopback address");
}

TEST(Guard, RefusesAllowListsThatSayNothing) {
  EXPECT_THAT(refused_list({"127.0.0.0/8"}), HasSubstr("holds only a loopback address"));
  EXPECT_THAT(refused_list({"169.254.169.0/24"}), HasSubstr("one by one"));
  EXPECT_THAT(refused_list({"10.0.0.1/8"}), HasSubstr("bits behind its prefix"));
  for (const char* text : {"", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/08",
                           "fd00::/129", "10.0.0.0/8/8", "fe80::%1/64", "host", "10.0.0"}) {
    EXPECT_THAT(refused_list({text}), HasSubstr("is not a range of addresses")) << text;
  }
}

}  // namespace
}  // namespace hapax::webhook
