// A receiver of webhooks over both databases: what was verified takes effect once, however often it
// comes, because its id commits with the handler's work.
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/webhook.h>

#include "application.h"
#include "signing/key_ring.h"

namespace hapax::application {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
constexpr std::array<std::string_view, 1> kKeys = {kSecret};
const Time kSent = time_from_ms(1'700'000'000'000);

struct ReceivedRequest {
  std::string id;
  std::string timestamp;
  std::string signature;
  std::string body;
};

ReceivedRequest sent_at(Time at, const std::string& id, const std::string& body) {
  const std::array terms{signing::KeyTerm{.key = kSecret}};
  const std::array<std::string_view, 1> pieces{body};
  const auto signature = signing::KeyRing::make(terms)->sign({id, at, pieces});
  return {id, signing::webhook_timestamp(at), *signature, body};
}

class WebhookTest : public ApplicationTest {
 protected:
  // As a handler of HTTP does it; answers the status.
  int receive(const ReceivedRequest& request, Time now, const Work& work) {
    const std::array header{Header{"webhook-id", request.id},
                            Header{"webhook-timestamp", request.timestamp},
                            Header{"webhook-signature", request.signature}};
    const auto verifier = WebhookVerifier::make(kKeys);
    const auto verdict = verifier->verify(header, request.body, now);
    const auto* sent = std::get_if<VerifiedWebhook>(&verdict);
    if (sent == nullptr) return 401;
    const auto handled = Inbox(database()).handle("orders", {sent->id, request.body}, work);
    if (!handled) return 503;
    return handled->taking == Taking::kConflict ? 422 : 200;
  }
  int receive(const ReceivedRequest& request, Time now) {
    return receive(request, now, [&]() -> Result<std::string> {
      HAPAX_CHECK(order("o-" + request.id));
      return std::string();
    });
  }
};
INSTANTIATE_TEST_SUITE_P(All, WebhookTest, testing::ValuesIn(all_kinds()), name_of);

TEST_P(WebhookTest, every_attempt_is_answered_and_one_takes_effect) {
  for (const Duration pause : {0s, 10s, 600s, 86'400s}) {
    EXPECT_EQ(receive(sent_at(kSent + pause, "k1", "{}"), kSent + pause), 200);
  }
  EXPECT_EQ(count("orders"), 1);
  EXPECT_EQ(receive(sent_at(kSent, "k2", "{}"), kSent), 200);
  EXPECT_EQ(count("orders"), 2);
}

TEST_P(WebhookTest, a_handler_that_failed_is_run_by_the_next_attempt) {
  const auto request = sent_at(kSent, "k1", "{}");
  const Work fails = [&]() -> Result<std::string> {
    HAPAX_CHECK(order("o-k1"));
    return Error{Errc::kUnavailable, "no"};
  };
  EXPECT_EQ(receive(request, kSent, fails), 503);
  EXPECT_EQ(count("orders"), 0);
  EXPECT_EQ(receive(request, kSent + 1s), 200);
  EXPECT_EQ(count("orders"), 1);
}

TEST_P(WebhookTest, what_is_forged_or_old_is_not_even_remembered) {
  ReceivedRequest forged = sent_at(kSent, "k1", "{}");
  forged.body = "{ }";
  EXPECT_EQ(receive(forged, kSent), 401);
  EXPECT_EQ(receive(sent_at(kSent, "k1", "{}"), kSent + 301s), 401);
  EXPECT_EQ(count(table("inbox")), 0);
  EXPECT_EQ(receive(sent_at(kSent, "k1", "{}"), kSent), 200);
  // Somebody who saw it sends it again within the tolerance.
  EXPECT_EQ(receive(sent_at(kSent, "k1", "{}"), kSent + 299s), 200);
  EXPECT_EQ(count("orders"), 1);
}

}  // namespace
}  // namespace hapax::application
