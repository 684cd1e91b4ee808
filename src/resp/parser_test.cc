#include "resp/parser.h"

#include <gtest/gtest.h>

namespace hapax::resp {
namespace {

std::vector<std::string> words(const Parser& parser) {
  return {parser.arguments().begin(), parser.arguments().end()};
}

const ParserLimits kSmall{
    .arguments_max = 4, .argument_bytes_max = 100, .command_bytes_max = 200, .line_bytes_max = 50};

TEST(RespParser, ReadsAnArrayOfBulkStrings) {
  Parser parser{ParserLimits{}};
  const std::string bytes = "*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\nrest";
  ASSERT_EQ(parser.parse(bytes), Parsed::kCommand);
  EXPECT_EQ(words(parser), (std::vector<std::string>{"GET", "a\r\nb"}));
  EXPECT_EQ(parser.consumed(), bytes.size() - 4);
}

TEST(RespParser, ReadsTheSameHoweverTheBytesArrive) {
  const std::string bytes = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n";
  Parser parser{ParserLimits{}};
  for (std::size_t i = 1; i < bytes.size(); ++i) {
    ASSERT_EQ(parser.parse(std::string_view(bytes).substr(0, i)), Parsed::kMore) << i;
  }
  ASSERT_EQ(parser.parse(bytes), Parsed::kCommand);
  EXPECT_EQ(words(parser), (std::vector<std::string>{"SET", "k", ""}));
}

TEST(RespParser, ReadsCommandsOneBehindTheOther) {
  Parser parser{ParserLimits{}};
  const std::string_view bytes = "*1\r\n$4\r\nPING\r\nPING x\r\n";
  ASSERT_EQ(parser.parse(bytes), Parsed::kCommand);
  const std::string_view rest = bytes.substr(parser.consumed());
  ASSERT_EQ(parser.parse(rest), Parsed::kCommand);
  EXPECT_EQ(words(parser), (std::vector<std::string>{"PING", "x"}));
  EXPECT_EQ(parser.consumed(), rest.size());
}

TEST(RespParser, AnEmptyArrayIsACommandWithoutWords) {
  Parser parser{ParserLimits{}};
  EXPECT_EQ(parser.parse("*0\r\n"), Parsed::kCommand);
  EXPECT_TRUE(parser.arguments().empty());
  EXPECT_EQ(parser.parse("*-1\r\n"), Parsed::kCommand);
  EXPECT_TRUE(parser.arguments().empty());
}

TEST(RespParser, ALineHasWordsWithQuotesAndEscapes) {
  Parser parser{ParserLimits{}};
  ASSERT_EQ(parser.parse("SET \"a b\\n\\x41\" 'it\\'s' plain\n"), Parsed::kCommand);
  EXPECT_EQ(words(parser), (std::vector<std::string>{"SET", "a b\nA", "it's", "plain"}));
}

struct Broken {
  const char* bytes;
  const char* problem;
};

class RespBroken : public testing::TestWithParam<Broken> {};

TEST_P(RespBroken, IsRefusedWithTheReason) {
  Parser parser{kSmall};
  ASSERT_EQ(parser.parse(GetParam().bytes), Parsed::kBroken);
  EXPECT_NE(parser.problem().find(GetParam().problem), std::string::npos) << parser.problem();
}

INSTANTIATE_TEST_SUITE_P(Protocol, RespBroken,
                         testing::Values(Broken{"*5\r\n", "multibulk length"},
                                         Broken{"*x\r\n", "multibulk length"},
                                         Broken{"*99999999999999999999\r\n", "multibulk length"},
                                         Broken{"*1\r\n+x\r\n", "expected '$', got '+'"},
                                         Broken{"*1\r\n$-1\r\n", "bulk length"},
                                         Broken{"*1\r\n$101\r\n", "bulk length"},
                                         Broken{"*01\r\n$4\r\nPING\r\n", "multibulk length"},
                                         Broken{"*1\r\n$04\r\nPING\r\n", "bulk length"},
                                         Broken{"*1\r\n$+4\r\nPING\r\n", "bulk length"},
                                         Broken{"*1\r\n$-0\r\n\r\n", "bulk length"},
                                         Broken{"*1\r\n$1\r\nab\r\n", "without its end"},
                                         Broken{"SET \"a\r\n", "unbalanced quotes"},
                                         Broken{"SET \"a\"b\r\n", "unbalanced quotes"}));

// A9: a control byte ends the connection where it stands, whether the line is whole or not.
TEST(RespParser, ABytePastWhatPeopleTypeEndsAnInlineRequest) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (c == '\n') continue;
    const bool control = (byte < 0x20 && c != '\t') || byte == 0x7f;
    for (const std::string& line : {std::string("GET a") + c + "b", std::string(1, c) + "x"}) {
      if (line.front() == '*') continue;
      Parser part{kSmall};
      EXPECT_EQ(part.parse(line), control ? Parsed::kBroken : Parsed::kMore) << byte;
      Parser whole{kSmall};
      const bool quote = c == '"' || c == '\'';
      const bool fits = !control && !(quote && line.front() == c);
      EXPECT_EQ(whole.parse(line + "\r\n"), fits ? Parsed::kCommand : Parsed::kBroken) << byte;
    }
  }
}

TEST(RespParser, OnlyTheLastByteOfALineMayBeCr) {
  Parser parser{kSmall};
  EXPECT_EQ(parser.parse("PING\r"), Parsed::kMore);
  EXPECT_EQ(parser.parse("PING\r\n"), Parsed::kCommand);
  EXPECT_EQ(parser.parse("PING\r\r\n"), Parsed::kBroken);
  EXPECT_EQ(parser.parse("PING\rPING\r\n"), Parsed::kBroken);
}

TEST(RespParser, NoMemoryIsTakenForALengthThatIsOnlyAnnounced) {
  Parser parser{ParserLimits{}};
  EXPECT_EQ(parser.parse("*1000000\r\n$16777216\r\n"), Parsed::kMore);
  Parser other{ParserLimits{}};
  EXPECT_EQ(other.parse("*1\r\n$16777217\r\n"), Parsed::kBroken);
}

TEST(RespParser, ALineWithoutEndIsRefusedAtTheLimit) {
  Parser parser{kSmall};
  EXPECT_EQ(parser.parse(std::string(50, 'x')), Parsed::kMore);
  EXPECT_EQ(parser.parse(std::string(51, 'x')), Parsed::kBroken);
  EXPECT_EQ(parser.parse("*" + std::string(60, '1')), Parsed::kBroken);
}

}  // namespace
}  // namespace hapax::resp
