#include "webhook/renamed_url.h"

#include <gtest/gtest.h>

namespace hapax::webhook {
namespace {

std::string all_of(std::string_view url) {
  const RenamedUrl renamed = renamed_url(url, "erp.internal");
  return renamed.url + " " + renamed.connect_to + " " + renamed.authority;
}

TEST(RenamedUrl, LeadsToTheHostThatWasThere) {
  EXPECT_EQ(all_of("https://10.0.0.7/in?a=b:c"),
            "https://erp.internal/in?a=b:c ::10.0.0.7:443 10.0.0.7");
  EXPECT_EQ(all_of("HTTPS://gate:8443?x"), "HTTPS://erp.internal:8443?x ::gate:8443 gate:8443");
  EXPECT_EQ(all_of("https://[::1]:8443/"), "https://erp.internal:8443/ ::[::1]:8443 [::1]:8443");
  EXPECT_EQ(all_of("https://[::1]"), "https://erp.internal ::[::1]:443 [::1]");
  EXPECT_EQ(all_of("https://gate:/in"), "https://erp.internal/in ::gate:443 gate:");
}

TEST(RenamedUrl, NamesAreThoseOfHosts) {
  for (const char* good : {"a", "erp.internal", "10.0.0.7", "xn--1-a.example"}) {
    EXPECT_TRUE(is_server_name(good)) << good;
  }
  for (const char* bad : {"", ".a", "-a", "a:1", "a/b", "a@b", "a b", "ä", "[::1]"}) {
    EXPECT_FALSE(is_server_name(bad)) << bad;
  }
  EXPECT_FALSE(is_server_name(std::string(254, 'a')));
}

}  // namespace
}  // namespace hapax::webhook
