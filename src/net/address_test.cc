#include "net/address.h"

#include <gtest/gtest.h>

namespace hapax::net {
namespace {

struct Written {
  const char* text;
  Address address;
};

TEST(Address, IsReadAsPeopleWriteIt) {
  const Written all[] = {
      {"127.0.0.1:80", {"127.0.0.1", 80}},
      {"[::1]:80", {"::1", 80}},
      {":7171", {"0.0.0.0", 7171}},
      {"localhost:0", {"127.0.0.1", 0}},
      {"10.1.2.3:65535", {"10.1.2.3", 65535}},
      {"[0:0:0:0:0:0:0:1]:80", {"::1", 80}},
  };
  for (const Written& written : all) {
    const Result<Address> read = parse_address(written.text);
    ASSERT_TRUE(read) << written.text;
    EXPECT_EQ(*read, written.address) << written.text;
  }
}

TEST(Address, ItsTextIsReadAsTheSameAddress) {
  for (const char* const text : {"127.0.0.1:80", "[::1]:0", "0.0.0.0:65535", "[fe80::1]:7171"}) {
    const Result<Address> address = parse_address(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->text(), text);
  }
}

TEST(Address, WhatIsWrongIsSaid) {
  const auto why = [](std::string_view text) {
    const Result<Address> read = parse_address(text);
    return read ? "it was read as " + read->text() : read.error().text();
  };
  for (const char* const text : {"", "127.0.0.1", "localhost"}) {
    EXPECT_NE(why(text).find("it has no port"), std::string::npos) << why(text);
  }
  for (const char* const text :
       {":", "127.0.0.1:", ":65536", ":-1", ":+1", ": 1", ":1 ", ":x", ":99999999999999999999"}) {
    EXPECT_NE(why(text).find("its port is not a number"), std::string::npos) << why(text);
  }
  for (const char* const text : {"example.org:80", "[::1:80", "::1]:80", "1.2.3:80", "1.2.3.256:80",
                                 "[]x:80", " 127.0.0.1:80", "http://127.0.0.1:80"}) {
    EXPECT_NE(why(text).find("its host is neither"), std::string::npos) << why(text);
  }
}

TEST(Address, OnlyThisMachineIsLoopback) {
  for (const char* const host : {"127.0.0.1", "127.1.2.3", "::1"}) {
    EXPECT_TRUE((Address{host, 80}.loopback())) << host;
  }
  for (const char* const host : {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "", "not an address"}) {
    EXPECT_FALSE((Address{host, 80}.loopback())) << host;
  }
}

}  // namespace
}  // namespace hapax::net
