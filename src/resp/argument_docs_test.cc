#include "resp/argument_docs.h"

#include <gtest/gtest.h>

namespace hapax::resp {
namespace {

std::string told(std::string_view usage) {
  Replies replies;
  replies.use(RespVersion::kResp3);
  tell_arguments(replies, usage);
  std::string text(replies.text());
  for (std::size_t at = 0; (at = text.find("\r\n", at)) != std::string::npos;) {
    text.replace(at, 2, " ");
  }
  return text;
}

TEST(ArgumentDocs, TellsRequiredAndOptionalArguments) {
  EXPECT_EQ(told(""), "*0 ");
  EXPECT_EQ(told("key [ID value]"),
            "*2 %2 $4 name $3 key $4 type $3 key "
            "%4 $4 name $5 value $4 type $6 string $5 token $2 ID $5 flags *1 +optional ");
}

TEST(ArgumentDocs, TellsTokensAndMore) {
  EXPECT_EQ(told("key… [NX]"),
            "*2 %3 $4 name $3 key $4 type $3 key $5 flags *1 +multiple "
            "%4 $4 name $2 nx $4 type $10 pure-token $5 token $2 NX $5 flags *1 +optional ");
  EXPECT_EQ(told("[HEADERS count name value …]"),
            "*1 %4 $4 name $20 count name value … $4 type $6 string $5 token $7 HEADERS "
            "$5 flags *1 +optional ");
}

}  // namespace
}  // namespace hapax::resp
