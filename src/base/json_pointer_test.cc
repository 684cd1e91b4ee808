#include "base/json_pointer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::base {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

// The examples of RFC 6901.
TEST(JsonPointer, NamesTheWay) {
  EXPECT_THAT(read_json_pointer(""), Optional(IsEmpty()));
  EXPECT_THAT(read_json_pointer("/foo/0"), Optional(ElementsAre("foo", "0")));
  EXPECT_THAT(read_json_pointer("/"), Optional(ElementsAre("")));
  EXPECT_THAT(read_json_pointer("/a~1b/m~0n"), Optional(ElementsAre("a/b", "m~n")));
  EXPECT_THAT(read_json_pointer("/~01"), Optional(ElementsAre("~1")));
}

TEST(JsonPointer, IsWrittenAsItWasRead) {
  for (const char* one : {"", "/", "/foo/0", "/a~1b/m~0n", "/~01", "/größe//x"}) {
    EXPECT_EQ(json_pointer(*read_json_pointer(one)), one);
  }
}

TEST(JsonPointer, RefusesWhatIsNone) {
  for (const char* one : {"a", "a/b", "/a~", "/a~2", "~0"}) {
    EXPECT_EQ(read_json_pointer(one), std::nullopt) << one;
  }
}

}  // namespace
}  // namespace hapax::base
