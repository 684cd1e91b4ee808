#include "workflows/record_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::workflows {
namespace {

using delivery::KeyFormat;
using testing::ElementsAre;
using testing::HasSubstr;

class RecordKey : public testing::Test {
 protected:
  [[nodiscard]] Result<std::vector<std::string>> values(std::string_view format) const {
    return key_values(KeyFormat::parse(format).value(), record_);
  }
  [[nodiscard]] std::string lacks(std::string_view format) const {
    const auto made = values(format);
    return made ? "made" : made.error().detail;
  }

  const std::vector<std::pair<std::string, std::string>> headers_{
      {"X-Shop", "north"}, {"x-shop", "south"}, {"empty", ""}};
  KeyedRecord record_{.origin = signing::OutboxOrigin{"d", "orders", "order-17"},
                      .type = "OrderPaid",
                      .group = "customer-1",
                      .headers = headers_,
                      .payload = R"({"id":17,"order":{"no":"A-1","big":12345678901234567890.10},
                                     "none":null,"list":[1,{"x":true}],"void":""})"};
};

TEST_F(RecordKey, ValuesAreInTheOrderOfTheFormat) {
  EXPECT_THAT(values("{groupKey}{eventType}{table}{database}").value(),
              ElementsAre("customer-1", "OrderPaid", "orders", "d"));
  EXPECT_THAT(values("{payload:/order/no}:{payload:/id}:{header:X-SHOP}").value(),
              ElementsAre("A-1", "17", "north"));
  EXPECT_THAT(values("{payload:/order/big} {payload:/list/1/x}").value(),
              ElementsAre("12345678901234567890.10", "true"))
      << "no number loses digits";
}

// V8
TEST_F(RecordKey, ValuesAreRefusedIfTheRecordLacksOne) {
  EXPECT_THAT(lacks("{payload:/number}"), HasSubstr("{payload:/number} is not in its payload"));
  for (const char* one : {"none", "order", "list", "void"}) {
    EXPECT_THAT(lacks("{payload:/" + std::string(one) + "}"), HasSubstr("is null, empty, an ob"));
  }
  EXPECT_THAT(lacks("{header:y}"), HasSubstr("{header:y} is not among its headers"));
  EXPECT_THAT(lacks("{header:empty}"), HasSubstr("or is empty"));
  record_.type = record_.group = "";
  EXPECT_THAT(lacks("{primaryKey}{eventType}"), HasSubstr("{eventType} is empty"));
  EXPECT_THAT(lacks("{groupKey}"), HasSubstr("{groupKey} is empty"));
}

// V8: two readers may understand such a payload differently, and so may two receivers.
TEST_F(RecordKey, ValuesAreRefusedOfAPayloadThatIsNotJson) {
  for (const char* one : {"", "x", "{\"id\":1,\"id\":2}", "{\"id\":1} x", "{\"id\":\"\xff\"}"}) {
    record_.payload = one;
    EXPECT_THAT(lacks("{payload:/id}"), HasSubstr("not JSON")) << one;
    EXPECT_EQ(lacks("{primaryKey}"), "made") << "nobody reads the payload";
  }
}

// A record has an id, or a version: either one is enough if the format has both.
TEST_F(RecordKey, AnIdNamesOneChange) {
  EXPECT_THAT(values("{primaryKey}:{changeVersion}").value(), ElementsAre("order-17", ""));
  EXPECT_EQ(lacks("{primaryKey}"), "made");
  EXPECT_THAT(lacks("{changeVersion}{groupKey}"), HasSubstr("{changeVersion} is empty"));
  record_.origin = signing::StreamOrigin{"s", "42", Sequence{17}};
  EXPECT_THAT(values("{table}:{primaryKey}:{changeVersion}").value(), ElementsAre("42", "", "17"));
  EXPECT_THAT(lacks("{primaryKey}{groupKey}"), HasSubstr("{primaryKey} is empty"));
  record_.origin = signing::StreamOrigin{"s", "42", std::string_view("order-17")};
  EXPECT_THAT(values("{database}:{primaryKey}").value(), ElementsAre("s", "order-17"));
  record_.origin = signing::IngestOrigin{"", "retail", "e-1"};
  EXPECT_THAT(values("{database}:{table}{primaryKey}").value(), ElementsAre("", "retail", "e-1"))
      << "a server without tenants";
}

TEST_F(RecordKey, IsThatOfTheTableWithoutAFormat) {
  const signing::OutboxOrigin origin{"d", "orders", "order-17"};
  EXPECT_EQ(record_key({}, record_, {.output = 2}).value(),
            signing::DeliveryKey::make(origin, {.output = 2})->text());
  EXPECT_EQ(record_key({.form = delivery::KeyForm::kShort}, record_).value(),
            signing::DeliveryKey::make(origin)->text(signing::KeyForm::kShort));
}

TEST_F(RecordKey, IsThatOfTheFormat) {
  const delivery::KeySettings settings{
      .format = KeyFormat::parse("{payload:/order/no}:{payload:/id}").value()};
  const signing::FormatOrigin origin{"{payload:/order/no}:{payload:/id}", {"A-1", "17"}};
  EXPECT_EQ(record_key(settings, record_, {.endpoint = "crm"}).value(),
            signing::DeliveryKey::make(origin, {.endpoint = "crm"})->text());
  record_.payload = "{}";
  EXPECT_EQ(record_key(settings, record_).error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace hapax::workflows
