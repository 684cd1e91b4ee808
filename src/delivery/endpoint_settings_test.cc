#include "delivery/endpoint_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delivery/workflow_test.h"

namespace hapax::delivery {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(SecretText, ReferencesAreFoundAndWrittenBack) {
  const SecretText text = secret("Bearer ${env:ERP_TOKEN}");
  ASSERT_EQ(text.pieces().size(), 2U);
  EXPECT_EQ(std::get<SecretReference>(text.pieces()[1]),
            (SecretReference{SecretReference::Place::kEnvironment, "ERP_TOKEN"}));
  for (const char* one : {"", "plain", "${file:/run/secrets/a b}", "a${secret:x_1}b${env:Y}",
                          "$${env:X}", "$$${env:X}", "$5", "cost: $$", "$${", "a$$${b"}) {
    EXPECT_EQ(secret(one).written(), one);
    EXPECT_EQ(secret(secret(one).written()), secret(one)) << one;
  }
  EXPECT_EQ(std::get<std::string>(secret("$${env:X}").pieces().at(0)), "${env:X}");
}

TEST(SecretText, WhatIsNotAReferenceIsToldWithoutRepeatingIt) {
  for (const char* one : {"${hunter2}", "${vault:hunter2}", "${env:}", "${env:hunter2", "${file:}",
                          "${env:hunter2 x}", "${secret:../hunter2}", "${}"}) {
    const auto read = SecretText::parse(one);
    ASSERT_FALSE(read.ok()) << one;
    EXPECT_THAT(read.error().detail, Not(HasSubstr("hunter2"))) << one;
  }
  EXPECT_FALSE(SecretText::parse("a\nb").ok());
}

TEST(SecretText, ClearTextIsHiddenAndReferencesAreShown) {
  EXPECT_EQ(secret("hunter2").hidden(), "(hidden)");
  EXPECT_EQ(secret("Bearer ${env:T}").hidden(), "Bearer ${env:T}");
  EXPECT_EQ(secret("hunter2${env:T}").hidden(), "(hidden)${env:T}");
  // What was hidden once looks the same when it is hidden again.
  EXPECT_EQ(secret(secret("hunter2${env:T}").hidden()).hidden(), "(hidden)${env:T}");
  EXPECT_FALSE(secret("Bearer ${env:T}").has_clear_text());
  EXPECT_FALSE(secret("${file:a}").has_clear_text());
  EXPECT_TRUE(secret("Bearer ").has_clear_text());
  EXPECT_TRUE(secret("x${env:T}").has_clear_text());
}

TEST(SecretText, PasswordsOfDatabasesAreFound) {
  for (const char* one :
       {"postgres://u:p@h/db", "postgres:///db?password=p", "host=h password=p"}) {
    EXPECT_TRUE(has_clear_password(secret(one))) << one;
  }
  for (const char* one :
       {"postgres://u@h/db", "postgres://u:${env:P}@h/db", "sqlite:shop.db",
        "postgres:///db?password=${file:p}", "${env:DATABASE}", "postgres://${env:U}@h/db"}) {
    EXPECT_FALSE(has_clear_password(secret(one))) << one;
  }
}

TEST(SecretText, HeadersWithSecretsAreKnownByTheirNames) {
  for (const char* one : {"Authorization", "x-api-key", "Cookie", "X-Auth-Token"}) {
    EXPECT_TRUE(is_secret_header(one)) << one;
  }
  EXPECT_FALSE(is_secret_header("Content-Type"));
  EXPECT_FALSE(is_secret_header("X-Source"));
}

TEST(WebUrl, SchemeAndHostAreRead) {
  const WebUrl url = WebUrl::parse("HTTPS://ERP.Example:8443/orders?x=1").value();
  EXPECT_TRUE(url.encrypted());
  EXPECT_EQ(url.host(), "erp.example");
  EXPECT_EQ(url.text(), "HTTPS://ERP.Example:8443/orders?x=1");
  for (const char* one : {"http://localhost:1", "http://127.0.0.1/a", "http://127.8.8.8",
                          "http://[::1]:80/", "http://a.localhost"}) {
    EXPECT_TRUE(WebUrl::parse(one).value().loopback()) << one;
  }
  for (const char* one :
       {"http://127.example.com", "http://10.0.0.1", "http://localhost.example", "http://[::2]/"}) {
    EXPECT_FALSE(WebUrl::parse(one).value().loopback()) << one;
  }
}

TEST(WebUrl, OthersAreRefused) {
  for (const char* one :
       {"", "erp.example", "ftp://a", "https://", "https:///path", "http://:80/", "https://u:p@h/",
        "https://a b/", "https://a/#x", "https://[]/", "https://a/\n"}) {
    EXPECT_FALSE(WebUrl::parse(one).ok()) << one;
  }
}

TEST(EndpointSettings, EventTypesAreTakenWholeOrByTheirBeginning) {
  EndpointSettings endpoint{"a", StreamTarget{"s"}};
  EXPECT_TRUE(endpoint.takes("anything"));
  EXPECT_TRUE(endpoint.takes(""));
  endpoint.event_types = {"OrderCreated", "Invoice*"};
  EXPECT_TRUE(endpoint.takes("OrderCreated"));
  EXPECT_TRUE(endpoint.takes("Invoice"));
  EXPECT_TRUE(endpoint.takes("InvoicePaid"));
  EXPECT_FALSE(endpoint.takes("OrderCreatedTwice"));
  EXPECT_FALSE(endpoint.takes(""));
}

TEST(StatusRules, AreOfOneStatusOrOfAHundred) {
  const auto one = StatusRule::parse("404", StatusWord::kRetry);
  EXPECT_EQ(one, (StatusRule{404, 404, StatusWord::kRetry}));
  EXPECT_EQ(one->statuses(), "404");
  const auto all = StatusRule::parse("4xx", StatusWord::kDisable);
  EXPECT_EQ(all, (StatusRule{400, 499, StatusWord::kDisable}));
  EXPECT_EQ(all->statuses(), "4xx");
  for (const char* text :
       {"", "4", "40", "4x4", "44x", "4XX", "100", "1xx", "600", "4004", "abc"}) {
    EXPECT_EQ(StatusRule::parse(text, StatusWord::kRetry), std::nullopt) << text;
  }
}

TEST(StatusRules, OneStatusWinsOverItsHundred) {
  const std::vector<StatusRule> rules{*StatusRule::parse("404", StatusWord::kRetry),
                                      *StatusRule::parse("4xx", StatusWord::kDeadLetter),
                                      *StatusRule::parse("499", StatusWord::kDelivered)};
  EXPECT_EQ(word_for_status(rules, 404), StatusWord::kRetry);
  EXPECT_EQ(word_for_status(rules, 405), StatusWord::kDeadLetter);
  EXPECT_EQ(word_for_status(rules, 410), StatusWord::kDeadLetter);
  EXPECT_EQ(word_for_status(rules, 499), StatusWord::kDelivered);
  EXPECT_EQ(word_for_status(rules, 500), std::nullopt);
  EXPECT_EQ(word_for_status({}, 410), StatusWord::kDisable);
  EXPECT_EQ(word_for_status({}, 404), std::nullopt);
}

}  // namespace
}  // namespace hapax::delivery
