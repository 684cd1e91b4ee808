#include "jq/bytecode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::jq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Refusals, ReadsCallsOfNestedFunctions) {
  EXPECT_THAT(
      refusals("0000 TOP\n0001 CALL_JQ f:0\nf:0:\n  [params: a, b]\n  0003 CALL_BUILTIN env\n"),
      ElementsAre(HasSubstr("env is refused")));
}

TEST(Refusals, NamesEachOnce) {
  EXPECT_THAT(refusals("0001 CALL_BUILTIN env\n0004 CALL_BUILTIN env\n0007 LOADV $ENV:0^1\n"),
              ElementsAre(HasSubstr("env is refused"), HasSubstr("$ENV is refused")));
}

TEST(Refusals, ConstantsAndNamesAreNotCalls) {
  EXPECT_THAT(refusals("0001 LOADK \"0002 CALL_BUILTIN env\"\nenv:0:\n  0000 CALL_JQ env:0\n"
                       "0002 STOREV $ENV:0\n0003 LOADV $ENVIRONMENT:1\n0004 CALL_BUILTIN length\n"),
              ElementsAre());
}

// X2: it may read a clock.
TEST(Refusals, AFunctionNobodyHasLookedAtIsRefused) {
  EXPECT_THAT(refusals("0001 CALL_BUILTIN random\n"),
              ElementsAre("random is refused: this version of Hapax does not know it"));
}

}  // namespace
}  // namespace hapax::jq
