// Requests of workflows to receivers on loopback: whose may go where, and with what credentials.
#include "workflows/endpoint_sink.h"

#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/clock.h"
#include "webhook/receiver_test.h"
#include "workflows/endpoint_probe.h"
#include "workflows/endpoint_rules.h"

namespace hapax::workflows {
namespace {

using delivery::DeclaredIn;
using delivery::SecretText;
using delivery::SendResult;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using webhook::Receiver;

delivery::HttpTarget target_at(const std::string& url) {
  return {.url = delivery::WebUrl::parse(url).value()};
}

class Endpoints : public testing::Test {
 protected:
  // `allow`: what the operator lets tenants reach.
  void open(DeclaredIn declared_in, const std::vector<std::string>& allow = {}) {
    webhook::SenderSettings settings;
    settings.guard = guard_of({.allow = allow}).value();
    sender_ = webhook::Sender::open(std::move(settings)).value();
    declared_in_ = declared_in;
  }
  [[nodiscard]] EndpointReach reach() {
    return {.sender = *sender_, .clock = clock_, .secrets = {declared_in_, nullptr}};
  }
  SendResult send(const delivery::HttpTarget& target) {
    const auto sink = EndpointSink::make({}, target, reach()).value();
    delivery::Outgoing record;
    record.id = "key-1";
    record.payload = "{}";
    const delivery::Outgoing* const records[] = {&record};
    std::promise<SendResult> result;
    sink->start(records, clock_.steady_ms() + webhook::kPatient.count(),
                [&](std::vector<SendResult> results) { result.set_value(results.front()); });
    return result.get_future().get();
  }
  Errc refusal(const delivery::HttpTarget& target) {
    return EndpointSink::make({}, target, reach()).error().code;
  }

  host::HostClock clock_;
  Receiver receiver_{Receiver::answering(webhook::kOk)};
  std::string answer_;  // of the other one
  std::optional<Receiver> other_;
  std::unique_ptr<webhook::Sender> sender_;
  DeclaredIn declared_in_ = DeclaredIn::kFile;
};

TEST_F(Endpoints, OfTheOperatorMayBeAnywhere) {
  open(DeclaredIn::kFile);
  EXPECT_EQ(send(target_at(receiver_.url())).outcome, SendResult::Outcome::kDelivered);
}

// U3: the guard judges what a tenant names, by the address that the name stands for.
TEST_F(Endpoints, OfATenantAreNotOnThisMachine) {
  open(DeclaredIn::kApi);
  for (const char* host : {"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"}) {
    const auto result = send(target_at(receiver_.at().url("http", host)));
    EXPECT_EQ(result.outcome, SendResult::Outcome::kTryLater) << host;
    EXPECT_THAT(result.reason, HasSubstr("loopback")) << host;
  }
  EXPECT_THAT(receiver_.requests(), IsEmpty());
  EXPECT_EQ(receiver_.connections(), 0U);
}

TEST_F(Endpoints, OfATenantMayBeWhereTheOperatorAllows) {
  open(DeclaredIn::kApi, {"127.0.0.1"});
  EXPECT_EQ(send(target_at(receiver_.url())).outcome, SendResult::Outcome::kDelivered);
}

// A redirect is a failure, so no answer leads a request past the guard.
TEST_F(Endpoints, ThatRedirectAreNotFollowed) {
  answer_ = "HTTP/1.1 307 Temporary Redirect\r\nLocation: " + receiver_.url() +
            "\r\nContent-Length: 0\r\n\r\n";
  other_.emplace(Receiver::answering(answer_));
  open(DeclaredIn::kApi, {"127.0.0.1"});
  const auto result = send(target_at(other_->url()));
  EXPECT_EQ(result.outcome, SendResult::Outcome::kTryLater);
  EXPECT_THAT(other_->requests(), SizeIs(1));
  EXPECT_THAT(receiver_.requests(), IsEmpty());
}

// The token server and the status URL are addresses that the tenant names, too.
TEST_F(Endpoints, OfATenantHaveNoTokenServerOnThisMachine) {
  open(DeclaredIn::kApi);
  auto target = target_at("https://erp.example/in");
  target.auth = delivery::OAuth2Auth{.token_url = delivery::WebUrl::parse(receiver_.url()).value(),
                                     .client_id = SecretText::parse("id").value(),
                                     .client_secret = SecretText::parse("pw").value()};
  const auto result = send(target);
  EXPECT_EQ(result.outcome, SendResult::Outcome::kNotSent);
  EXPECT_THAT(result.reason, HasSubstr("loopback"));
  EXPECT_THAT(receiver_.requests(), IsEmpty());
}

TEST_F(Endpoints, OfATenantNameNoFilesOfTheServer) {
  open(DeclaredIn::kApi);
  auto target = target_at("https://erp.example/in");
  target.tls.ca_file = "/etc/passwd";
  EXPECT_EQ(refusal(target), Errc::kForbidden);
  target.tls.ca_file.clear();
  target.auth = delivery::MutualTlsAuth{"/etc/ssl/a.pem", "/etc/ssl/a.key"};
  EXPECT_EQ(refusal(target), Errc::kForbidden);
  target.auth = delivery::BearerAuth{SecretText::parse("${env:PATH}").value()};
  EXPECT_EQ(refusal(target), Errc::kForbidden);
}

// Behind a proxy nobody here sees the address.
TEST_F(Endpoints, OfATenantNeedTheOperatorsWordBehindAProxy) {
  open(DeclaredIn::kApi);
  EndpointReach through = reach();
  through.proxy = {.url = "http://127.0.0.1:3128", .filters = false};
  const auto target = target_at("https://erp.example/in");
  const auto refused = EndpointSink::make({}, target, through);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("the proxy filters"));
  through.proxy.filters = true;
  EXPECT_TRUE(EndpointSink::make({}, target, through));
  through.proxy.filters = false;
  through.secrets.declared_in = DeclaredIn::kFile;
  EXPECT_TRUE(EndpointSink::make({}, target, through));
}

// U4: a secret that is not there holds records back; none of them is blamed.
TEST_F(Endpoints, WithoutTheirSecretWaitForIt) {
  open(DeclaredIn::kFile);
  auto target = target_at(receiver_.url());
  target.auth = delivery::BearerAuth{SecretText::parse("${secret:ERP}").value()};
  const auto result = send(target);
  EXPECT_EQ(result.outcome, SendResult::Outcome::kNotSent);
  EXPECT_GT(result.after, Duration{0});
  EXPECT_THAT(result.reason, HasSubstr("secret ERP"));
  EXPECT_THAT(receiver_.requests(), IsEmpty());
}

// A status URL is asked with an access token where the endpoint wants one.
TEST_F(Endpoints, AreAskedWithATokenOfTheirOwn) {
  open(DeclaredIn::kFile);
  answer_ =
      "HTTP/1.1 200 OK\r\nContent-Length: 39\r\n\r\n"
      R"({"access_token":"t-17","expires_in":60})";
  other_.emplace(Receiver::answering(answer_));
  auto target = target_at(receiver_.url());
  target.auth = delivery::OAuth2Auth{.token_url = delivery::WebUrl::parse(other_->url()).value(),
                                     .client_id = SecretText::parse("id").value(),
                                     .client_secret = SecretText::parse("pw").value()};
  target.nature =
      delivery::NatureProbe{delivery::WebUrl::parse(receiver_.url() + "/{key}").value()};
  const auto probe = EndpointProbe::make(target, reach()).value();
  using Told = delivery::OutcomeProbe::Told;
  std::promise<Told> told;
  probe->ask("key-1", [&](Told one) { told.set_value(one); });
  EXPECT_EQ(told.get_future().get(), Told::kDelivered);
  ASSERT_THAT(receiver_.requests(), SizeIs(1));
  EXPECT_THAT(receiver_.requests()[0], HasSubstr("GET /hook/key-1 HTTP/1.1"));
  EXPECT_THAT(receiver_.requests()[0], HasSubstr("Authorization: Bearer t-17"));
  EXPECT_THAT(other_->requests()[0], Not(HasSubstr("t-17")));
}

}  // namespace
}  // namespace hapax::workflows
