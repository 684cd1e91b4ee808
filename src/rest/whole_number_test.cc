#include "rest/whole_number.h"

#include <gtest/gtest.h>

namespace hapax::rest {
namespace {

std::optional<std::uint64_t> read(std::string_view json) {
  return whole_number_in(wire::read_strict_json(json).value());
}

TEST(WholeNumbers, AreThoseThatASchemaCallsIntegers) {
  EXPECT_EQ(read("0"), 0U);
  EXPECT_EQ(read("17"), 17U);
  EXPECT_EQ(read("17.0"), 17U);
  EXPECT_EQ(read("9007199254740993"), 9'007'199'254'740'993U);
  EXPECT_EQ(read("18446744073709551615"), kWholeMax);
  for (const char* other : {"-1", "-1.0", "1.5", "1e17", "\"1\"", "true", "null", "[1]"}) {
    EXPECT_EQ(read(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace hapax::rest
