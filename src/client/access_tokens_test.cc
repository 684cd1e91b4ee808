#include "client/access_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using webhook::SendEnding;
using webhook::SendReply;

SendReply answered(int status, std::string body) {
  return {.ending = SendEnding::kAnswered, .status = status, .body = std::move(body)};
}

std::string told(const TokenAnswer& answer) {
  if (const auto* none = std::get_if<NoToken>(&answer)) return none->reason;
  const auto& token = std::get<AccessToken>(answer);
  return token.text + " for " + std::to_string(token.lasts.count());
}

std::string told(int status, std::string body) {
  return told(read_token_reply(answered(status, std::move(body))));
}

TEST(TokenRequests, SayWhoAsksByBasicAuthentication) {
  const auto request = token_request({.url = "https://id.example/token",
                                      .client_id = "a:b",
                                      .client_secret = "ä",
                                      .scope = "x y"});
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.body, "grant_type=client_credentials&scope=x%20y");
  // RFC 6749 §2.3.1: each is encoded before they are joined. "a%3Ab:%C3%A4"
  EXPECT_EQ(request.headers.at(2),
            (std::pair<std::string, std::string>("Authorization", "Basic YSUzQWI6JUMzJUE0")));
  EXPECT_TRUE(webhook::check_request(request).ok());
}

TEST(TokenReplies, AreReadStrictly) {
  EXPECT_EQ(told(200, R"({"access_token":"t","token_type":"bearer","expires_in":60})"),
            "t for 60000");
  EXPECT_EQ(told(200, R"({"access_token":"t","token_type":"Bearer","expires_in":"60"})"),
            "t for 60000");
  EXPECT_EQ(told(200, R"({"access_token":"t"})"), "t for 300000");
  EXPECT_EQ(told(200, R"({"access_token":"t","expires_in":-5})"), "t for 0");
  EXPECT_EQ(told(200, R"({"access_token":"t","expires_in":99999999999})"), "t for 86400000");
  EXPECT_EQ(told(200, "t"), "access token: the answer is not JSON");
  EXPECT_EQ(told(200, R"({"access_token":"a b"})"),
            "access token: the answer holds no access_token");
  EXPECT_EQ(told(200, R"({"access_token":"a\r\nX: y"})"),
            "access token: the answer holds no access_token");
  EXPECT_EQ(told(200, R"({"access_token":"t","token_type":"mac"})"),
            "access token: the answer has another token_type than Bearer");
  EXPECT_EQ(told(204, ""), "access token: HTTP 204");
}

// What was sent may be repeated in an answer.
TEST(TokenReplies, ARefusalTellsAWordOnly) {
  EXPECT_EQ(told(401, R"({"error":"invalid_client","error_description":"no secret s3cret"})"),
            "access token: HTTP 401 invalid_client");
  EXPECT_THAT(told(400, R"({"error":"s3cret is wrong"})"), Not(HasSubstr("s3cret")));
  SendReply busy = answered(503, "");
  busy.retry_after = "7";
  EXPECT_EQ(std::get<NoToken>(read_token_reply(busy)).after, Duration{7'000});
  const SendReply away{.ending = SendEnding::kNotSent, .reason = "nobody listens"};
  EXPECT_EQ(told(read_token_reply(away)), "access token: nobody listens");
}

class HandMovedClock final : public ports::Clock {
 public:
  std::int64_t now_ms = 1'000;
  std::int64_t wall_ms() override { return now_ms; }
  std::int64_t steady_ms() override { return now_ms; }
};

class Tokens : public testing::Test {
 protected:
  void use() {
    tokens->use([this](const TokenAnswer& answer) {
      const auto* none = std::get_if<NoToken>(&answer);
      used.push_back(none == nullptr ? std::get<AccessToken>(answer).text : none->reason);
    });
  }
  void grant(const std::string& token, int seconds) {
    const auto done = std::exchange(under_way, {});
    ASSERT_EQ(done.size(), 1U);
    done[0](answered(200, R"({"access_token":")" + token + R"(","expires_in":)" +
                              std::to_string(seconds) + "}"));
  }

  HandMovedClock clock;
  std::vector<webhook::OnReply> under_way;
  std::vector<std::string> used;
  bool stopped = false;
  const std::shared_ptr<AccessTokens> tokens = std::make_shared<AccessTokens>(
      [this](webhook::OnReply done) {
        if (!stopped) under_way.push_back(std::move(done));
        return !stopped;
      },
      clock);
};

TEST_F(Tokens, OneIsFetchedForAllWhoWait) {
  use();
  use();
  EXPECT_EQ(under_way.size(), 1U);
  EXPECT_TRUE(used.empty());
  grant("t1", 3'600);
  use();
  EXPECT_THAT(used, ElementsAre("t1", "t1", "t1"));
  EXPECT_TRUE(under_way.empty());
}

TEST_F(Tokens, OneIsFetchedBeforeTheLastEnds) {
  use();
  grant("t1", 100);
  clock.now_ms += 79'000;
  use();
  EXPECT_THAT(used, ElementsAre("t1", "t1"));
  clock.now_ms += 1'000;
  use();
  grant("t2", 3'600);
  clock.now_ms += 3'539'000;
  use();
  EXPECT_THAT(used, ElementsAre("t1", "t1", "t2", "t2"));
  clock.now_ms += 1'000;
  use();
  EXPECT_EQ(under_way.size(), 1U) << "a minute is enough for any request";
}

// Several requests are refused with the same token; the next one is not dropped for it.
TEST_F(Tokens, ARefusedOneIsNotUsedAgain) {
  use();
  grant("t1", 3'600);
  tokens->refused("t1");
  use();
  grant("t2", 3'600);
  tokens->refused("t1");
  use();
  EXPECT_THAT(used, ElementsAre("t1", "t2", "t2"));
}

TEST_F(Tokens, AFailureIsToldToAllWhoWaitAndTheNextAsksAgain) {
  use();
  use();
  const auto done = std::exchange(under_way, {});
  done.at(0)(answered(401, R"({"error":"invalid_client"})"));
  EXPECT_THAT(used, ElementsAre("access token: HTTP 401 invalid_client",
                                "access token: HTTP 401 invalid_client"));
  use();
  grant("t1", 3'600);
  EXPECT_EQ(used.back(), "t1");
}

TEST_F(Tokens, NobodyWaitsWhenNothingIsSentAnyMore) {
  stopped = true;
  use();
  EXPECT_THAT(used, ElementsAre("access token: the sender stops"));
}

}  // namespace
}  // namespace hapax::client
