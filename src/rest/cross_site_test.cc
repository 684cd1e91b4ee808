#include "rest/cross_site.h"

#include <gtest/gtest.h>

namespace hapax::rest {
namespace {

using List = std::initializer_list<std::pair<std::string_view, std::string_view>>;

bool passes(const List& list, Hosts hosts = Hosts::kThisMachine) {
  http::Request request;
  for (const auto& [name, value] : list) request.fields.add(name, value);
  request.authority = request.fields.get("Host");
  const Status checked = check_site(request, hosts);
  EXPECT_TRUE(checked || checked.error().code == Errc::kForbidden);
  return checked.ok();
}

// A9
TEST(CrossSite, ProgramsAndOwnPagesPass) {
  EXPECT_TRUE(passes({}));
  for (const char* host : {"localhost", "LocalHost:7171", "hapax.localhost:7171", "127.0.0.1:7171",
                           "127.9.9.9", "[::1]:7171", "[::1]"}) {
    EXPECT_TRUE(passes({{"Host", host}})) << host;
  }
  EXPECT_TRUE(passes({{"Host", "localhost:1"}, {"Origin", "http://localhost:1"}}));
  EXPECT_TRUE(passes({{"Host", "localhost"}, {"Sec-Fetch-Site", "same-origin"}}));
  EXPECT_TRUE(passes({{"Host", "localhost"}, {"Sec-Fetch-Site", "none"}}));
}

// A9
TEST(CrossSite, PagesOfOthersDoNot) {
  EXPECT_FALSE(passes({{"Host", "localhost"}, {"Sec-Fetch-Site", "cross-site"}}));
  EXPECT_FALSE(passes({{"Host", "localhost"}, {"Sec-Fetch-Site", "Same-Site"}}));
  for (const char* origin : {"https://evil.example", "null", "", "http://localhost:2",
                             "http://localhost.evil.example:1", "localhost:1"}) {
    EXPECT_FALSE(passes({{"Host", "localhost:1"}, {"Origin", origin}})) << origin;
  }
}

// A9: of two lines somebody else would read the other one.
TEST(CrossSite, WhatIsSaidTwiceDoesNot) {
  EXPECT_FALSE(passes({{"Host", "localhost:1"},
                       {"Origin", "http://localhost:1"},
                       {"Origin", "https://evil.example"}}));
  EXPECT_FALSE(passes(
      {{"Host", "localhost"}, {"Sec-Fetch-Site", "none"}, {"Sec-Fetch-Site", "cross-site"}}));
  EXPECT_FALSE(passes({{"Host", "localhost"}, {"Sec-Fetch-Site", "none, cross-site"}}));
  EXPECT_FALSE(passes({{"Host", "localhost"}, {"Sec-Fetch-Site", ""}}));
}

// A9
TEST(CrossSite, WhoIsAskedCountsAndNotWhatHostSays) {
  http::Request request;
  request.fields.add("Host", "localhost");
  request.authority = "evil.example";
  EXPECT_FALSE(check_site(request, Hosts::kThisMachine));
  EXPECT_TRUE(check_site(request, Hosts::kAny));
  request.fields.add("Origin", "http://localhost");
  EXPECT_FALSE(check_site(request, Hosts::kAny));
}

// A9: a name of theirs that leads to this machine.
TEST(CrossSite, ARebindingNameDoesNot) {
  for (const char* host : {"evil.example", "evil.example:7171", "127.0.0.1.evil.example", "h", "",
                           "10.0.0.1:7171", "[::2]:7171", "localhost.evil.example", "localhost:x",
                           "[::1].evil.example", "[::1]x", "localhost.", "127.1"}) {
    EXPECT_FALSE(passes({{"Host", host}})) << host;
    EXPECT_FALSE(passes({{"Host", host}, {"Origin", "http://" + std::string(host)}})) << host;
  }
  EXPECT_TRUE(passes({{"Host", "hapax.internal:7171"}}, Hosts::kAny));
}

}  // namespace
}  // namespace hapax::rest
