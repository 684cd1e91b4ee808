#include "auth/words.h"

#include <gtest/gtest.h>

namespace hapax::auth {
namespace {

TEST(Words, OfTenants) {
  for (const char* good : {"a", "7", "acme", "Acme-1.eu_west"}) EXPECT_TRUE(is_tenant(good));
  EXPECT_TRUE(is_tenant(std::string(64, 'a')));
  for (const char* bad : {"", ".", "..", "-a", "_a", "a b", "a/b", "a:b", "\x01", "a\x01"}) {
    EXPECT_FALSE(is_tenant(bad)) << bad;
  }
  EXPECT_FALSE(is_tenant(std::string(65, 'a')));
  EXPECT_FALSE(is_tenant(std::string_view("a\0b", 3)));
}

TEST(Words, OfRoles) {
  EXPECT_EQ(role_of("read-bodies"), Right::kReadBodies);
  EXPECT_FALSE(role_of("Admin"));
  EXPECT_FALSE(role_of(""));
  EXPECT_EQ(words_of(Rights::all(), ","), "produce,consume,admin,read-bodies");
  EXPECT_EQ(words_of({}, ","), "");
}

}  // namespace
}  // namespace hapax::auth
