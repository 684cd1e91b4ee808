#include "signing/delivery_key.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hapax::signing {
namespace {

constexpr std::string_view kDatabase = "0192f0c1-7b5e-7c3a-9d21-4f6a8b0c1d2e";
constexpr std::string_view kStore = "5f0c2a7be1d94836";

struct Vector {
  KeyOrigin origin;
  FanOut fan_out;
  std::string_view whole;
  std::string_view brief;
};

std::vector<Vector> vectors() {
  const OutboxOrigin outbox{kDatabase, "orders", "order-17"};
  return {
      {outbox,
       {},
       "801cacdb870f801f0aa5f17a59f499143dca8eb57af2835ee15993796d950b41",
       "gBys24cPgB8K"},
      {StreamOrigin{kStore, "42", "order-17"},
       {},
       "bd210456c7ecac66815aa49aa7f2c6929017fa8b5b03152522a804e7021629dc",
       "vSEEVsfsrGaB"},
      {StreamOrigin{kStore, "42", Sequence{17}},
       {},
       "3824ae74a7b118f2d898cf1ab1ec2a0d4469f26d4890c5c4494b0ae323d43512",
       "OCSudKexGPLY"},
      {IngestOrigin{"acme", "retail", "order-17"},
       {},
       "182ddb50ec4681a527f94465b2624a264f92ff2fa1c38cd666270d53a3dceb87",
       "GC3bUOxGgaUn"},
      {IngestOrigin{"", "retail", "order-17"},
       {},
       "a7e83530299470974e17062dc8fabbcec7f3ab4012aa101b8c64264b2052014c",
       "p-g1MCmUcJdO"},
      {RowOrigin{"sales_production", "orders", {"12345"}, "17"},
       {},
       "c7dcd51f334aefe716a8cfa7273a93c77471aa90645a9cbecaf9c790d5f5a715",
       "x9zVHzNK7-cW"},
      {RowOrigin{"sales_production", "lines", {"12345", "3"}, "17"},
       {},
       "20cd4d181d4b740f4ccbf74b6722e7f9f1b47e67b74f092abada9a16536d8c91",
       "IM1NGB1LdA9M"},
      {outbox,
       {.output = 2},
       "c1c0694f674509d566bde625ef04804ea8148360e532c1c3260f91018037ca2e",
       "wcBpT2dFCdVm"},
      {outbox,
       {.endpoint = "crm"},
       "978eccb4a257b66caca275532520075303a7f2fb31f24e33b9066a9784cef89f",
       "l47MtKJXtmys"},
      {outbox,
       {.output = 2, .endpoint = "crm"},
       "0c239dd5d600c44472d5bddbd3fb41602f65dbf056270de1073f58c2ce01cf2f",
       "DCOd1dYAxERy"},
      {OutboxOrigin{kDatabase, "orders", "größe"},
       {},
       "9ea0aefd7ec9dcb1416d31fa20a40501d4267b631c5cb9edb2fbcee0c4509211",
       "nqCu_X7J3LFB"},
      {FormatOrigin{"{payload:/order/id}:{eventType}", {"17", "OrderPaid"}},
       {},
       "5a25998950772e287063b9b29fe0d30c8637ef099c3ed39f88977e2cf6f10f8b",
       "WiWZiVB3Lihw"},
      {FormatOrigin{"{payload:/order/id}:{eventType}", {"17", "OrderPaid"}},
       {.output = 2, .endpoint = "crm"},
       "861611d20dba3915a3c44bc4510b9de9a5b69b88068996dd10410c2535ad17be",
       "hhYR0g26ORWj"},
      {FormatOrigin{"{primaryKey}", {"order-17"}},
       {},
       "d928d7a4d32896463edbec59ffc22ac0066fd0a6a2dccb211e3bb1fa76bb4db6",
       "2SjXpNMolkY-"},
  };
}

// V2: these can never change; receivers remember keys for years. They were computed by Python's
// hashlib, from the table in docs/reference/delivery-keys.md.
TEST(DeliveryKey, IsWhatItHasAlwaysBeen) {
  for (const Vector& vector : vectors()) {
    const auto key = DeliveryKey::make(vector.origin, vector.fan_out);
    ASSERT_TRUE(key.ok());
    EXPECT_EQ(key->text(), vector.whole);
    EXPECT_EQ(key->text(KeyForm::kShort), vector.brief);
  }
}

TEST(DeliveryKey, ComponentsAreTheDocumentedText) {
  EXPECT_EQ(key_components(OutboxOrigin{"d", "orders", "order-17"}).value(),
            "11:hapax-key-1,6:outbox,1:d,6:orders,8:order-17,0:,");
  EXPECT_EQ(key_components(RowOrigin{"d", "t", {"1", "2"}, "v"}, {.output = 3, .endpoint = "crm"})
                .value(),
            "11:hapax-key-1,3:row,1:d,1:t,8:1:1,1:2,,1:v,6:output,1:3,8:endpoint,3:crm,");
}

// V2: joined by colons, each of these groups would be one key.
TEST(DeliveryKey, TellsApartWhatAJoinWouldNot) {
  const std::vector<KeyOrigin> origins = {
      OutboxOrigin{"a:b", "c", "d"},
      OutboxOrigin{"a", "b:c", "d"},
      OutboxOrigin{"a", "b", "c:d"},
      OutboxOrigin{"a", "b", "c"},
      StreamOrigin{"a", "b", "c"},
      StreamOrigin{"a", "b", "5"},
      StreamOrigin{"a", "b", Sequence{5}},
      IngestOrigin{"a", "b", "c"},
      IngestOrigin{"", "a", "b"},
      RowOrigin{"a", "b", {"c", "d"}, "e"},
      RowOrigin{"a", "b", {"c,d"}, "e"},
      RowOrigin{"a", "b", {"c", "d", ""}, "e"},
      RowOrigin{"a", "b", {"1:c,1:d"}, "e"},
      RowOrigin{"a", "b", {"c", "d"}, "f"},
      OutboxOrigin{"a", "b", "c,0:,6:output,1:2"},
      FormatOrigin{"{table}:{groupKey}", {"a:b", "c"}},
      FormatOrigin{"{table}:{groupKey}", {"a", "b:c"}},
      FormatOrigin{"{table}:{groupKey}", {"a", ""}},
      FormatOrigin{"{table}:{groupKey}", {"", "a"}},
      FormatOrigin{"x{table}:{groupKey}", {"a", "b:c"}},
      FormatOrigin{"{table}", {"a"}},
  };
  std::set<std::string> keys;
  std::size_t made = 0;
  for (const KeyOrigin& origin : origins) {
    for (const FanOut& fan_out : {FanOut{}, FanOut{.output = 1}, FanOut{.output = 2},
                                  FanOut{.endpoint = "1"}, FanOut{.output = 1, .endpoint = "1"}}) {
      keys.insert(DeliveryKey::make(origin, fan_out).value().text());
      ++made;
    }
  }
  EXPECT_EQ(keys.size(), made);
}

TEST(DeliveryKey, HoldsNothingThatAnIdMustNot) {
  for (int i = 0; i < 200; ++i) {
    const std::string id = std::to_string(i);
    const auto key = DeliveryKey::make(OutboxOrigin{"d", "o", id}).value();
    for (const auto& [text, size] :
         {std::pair{key.text(), 64U}, std::pair{key.text(KeyForm::kShort), 12U}}) {
      EXPECT_EQ(text.size(), size);
      EXPECT_EQ(text.find_first_of("/+=. "), std::string::npos) << text;
    }
  }
}

// A key of nothing would be the same for every record.
TEST(DeliveryKey, NeedsWhatTellsRecordsApart) {
  const std::vector<std::pair<KeyOrigin, std::string_view>> lacking = {
      {OutboxOrigin{"", "o", "i"}, "uid of the database"},
      {OutboxOrigin{"d", "", "i"}, "name of the outbox"},
      {OutboxOrigin{"d", "o", ""}, "id of the record"},
      {StreamOrigin{"", "s", "i"}, "id of the store"},
      {StreamOrigin{"s", "", Sequence{1}}, "uid of the stream"},
      {StreamOrigin{"s", "s", ""}, "message id of the record"},
      {IngestOrigin{"t", "", "e"}, "id of the workflow"},
      {IngestOrigin{"t", "w", ""}, "id of the event"},
      {RowOrigin{"", "t", {"1"}, "v"}, "name of the database"},
      {RowOrigin{"d", "", {"1"}, "v"}, "name of the table"},
      {RowOrigin{"d", "t", {}, "v"}, "primary key"},
      {RowOrigin{"d", "t", {"1"}, ""}, "change version"},
      {FormatOrigin{"", {"1"}}, "format"},
      {FormatOrigin{"{table}", {""}}, "value of a field"},
      {FormatOrigin{"{table}", {}}, "value of a field"},
  };
  for (const auto& [origin, what] : lacking) {
    const auto key = DeliveryKey::make(origin);
    ASSERT_FALSE(key.ok()) << what;
    EXPECT_EQ(key.error().code, Errc::kInvalidArgument);
    EXPECT_NE(key.error().detail.find(what), std::string::npos) << key.error().detail;
  }
}

TEST(DeliveryKey, KnowsOneHashAlgorithm) {
  for (const char* name : {"SHA256", "sha256", "SHA-256"}) {
    EXPECT_TRUE(check_hash_algorithm(name).ok()) << name;
  }
  for (const char* name : {"", "sha512", "md5", "sha1", "sha2567"}) {
    EXPECT_FALSE(check_hash_algorithm(name).ok()) << name;
  }
}

}  // namespace
}  // namespace hapax::signing
