// A stranger who receives webhooks: the published example of Standard Webhooks is verified, and the
// same with another body is not.

#include <array>
#include <cstdio>
#include <string_view>

#include <hapax/webhook.h>

int main() {
  constexpr std::array<std::string_view, 1> kKeys = {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
  const auto verifier = hapax::WebhookVerifier::make(kKeys);
  if (!verifier.ok()) return 1;
  const std::array header = {
      hapax::Header{"webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"},
      hapax::Header{"webhook-timestamp", "1614265330"},
      hapax::Header{"webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}};
  const hapax::Time now = hapax::time_from_ms(1'614'265'330'000);
  const auto good = verifier->verify(header, R"({"test": 2432232314})", now);
  const auto bad = verifier->verify(header, R"({"test": 2432232315})", now);
  const auto* sent = std::get_if<hapax::VerifiedWebhook>(&good);
  const auto* refusal = std::get_if<hapax::WebhookRefusal>(&bad);
  if (sent == nullptr || refusal == nullptr) return 1;
  std::printf("%s verified; changed: %s\n", sent->id.c_str(), refusal->detail.c_str());
  return refusal->fault == hapax::WebhookFault::kNoMatch ? 0 : 1;
}
