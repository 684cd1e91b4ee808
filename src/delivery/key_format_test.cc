#include "delivery/key_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::delivery {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(KeyFormat, NamesItsFields) {
  EXPECT_EQ(KeyFormat().text(), "{database}:{table}:{primaryKey}:{changeVersion}");
  const KeyFormat format = KeyFormat::parse("{table}/{primaryKey}").value();
  EXPECT_THAT(format.parts(),
              ElementsAre(KeyPart(KeyField::kTable), KeyPart(KeyField::kPrimaryKey)));
  EXPECT_EQ(format.text(), "{table}/{primaryKey}");
  EXPECT_FALSE(format.has(KeyField::kChangeVersion));
  EXPECT_FALSE(format.has_record_part());
  EXPECT_EQ(KeyFormat::parse(KeyFormat().text()).value(), KeyFormat());
}

TEST(KeyFormat, NamesMembersAndHeadersOfTheRecord) {
  const KeyFormat format =
      KeyFormat::parse("{eventType}:{payload:/order/a~1b}:{header:X-Tenant}").value();
  EXPECT_THAT(format.parts(),
              ElementsAre(KeyPart(KeyField::kEventType), KeyPart(KeyMember{{"order", "a/b"}}),
                          KeyPart(KeyHeader{"x-tenant"})));
  EXPECT_TRUE(format.has_record_part());
  EXPECT_TRUE(format.reads_payload());
  EXPECT_EQ(text_of(format.parts()[1]), "{payload:/order/a~1b}");
  EXPECT_EQ(text_of(format.parts()[2]), "{header:x-tenant}");
  EXPECT_TRUE(KeyFormat::parse("{groupKey}").value().has_record_part());
  EXPECT_FALSE(KeyFormat::parse("{groupKey}").value().reads_payload());
}

// What was declared so before has the keys that it had.
TEST(KeyFormat, IsTheDefaultWhateverStandsBetweenTheFields) {
  EXPECT_TRUE(KeyFormat().is_default());
  EXPECT_TRUE(KeyFormat::parse("{database}/{table}/{primaryKey}@{changeVersion}")->is_default());
  EXPECT_FALSE(KeyFormat::parse("{table}{database}{primaryKey}{changeVersion}")->is_default());
  EXPECT_FALSE(KeyFormat::of({KeyField::kPrimaryKey}).is_default());
}

TEST(KeyFormat, RefusesWhatNamesNothing) {
  for (const char* one :
       {"", "fixed", "{table", "table}", "{tabel}", "{table}{table}", "{header:}", "{payload:}",
        "{payload:id}", "{payload:/a~}", "{header:X-A}{header:x-a}", "{payload:/a}{payload:/a}"}) {
    EXPECT_FALSE(KeyFormat::parse(one).ok()) << one;
  }
  EXPECT_THAT(KeyFormat::parse("{x}").error().detail,
              HasSubstr("database, table, primaryKey, changeVersion, eventType, groupKey"));
  EXPECT_THAT(KeyFormat::parse("{payload:id}").error().detail, HasSubstr("/order/id"));
  std::string many;
  for (int i = 0; i < 17; ++i) many += "{payload:/" + std::to_string(i) + "}";
  EXPECT_THAT(KeyFormat::parse(many).error().detail, HasSubstr("17 fields, at most 16"));
}

}  // namespace
}  // namespace hapax::delivery
