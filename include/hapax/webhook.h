// Webhooks at their receiver: who sent this request, and is it as it was sent? Signatures are those
// of Standard Webhooks (https://www.standardwebhooks.com), whoever the sender is.
//
//   const std::string_view keys[] = {"whsec_…", "whpk_…"};
//   const auto verifier = hapax::WebhookVerifier::make(keys);
//   …
//   const auto verdict = verifier->verify(header, body, now);
//   const auto* sent = std::get_if<hapax::VerifiedWebhook>(&verdict);
//   if (sent == nullptr) answer 401 and do nothing
//   inbox.handle("orders", {.id = sent->id, .content = …}, work), answer 200 if that is good
//
// A request that was verified may still be one that came before: senders repeat what they got no
// answer for, and others can repeat what they have seen within the tolerance. The verifier keeps
// nothing and cannot tell. Give webhook-id to an Inbox (inbox.h), which stores it in the
// transaction of what the handler does, and answer a duplicate with success as well.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <hapax/ops.h>
#include <hapax/result.h>
#include <hapax/time.h>

namespace hapax {

enum class WebhookFault : std::uint8_t {
  kMissingHeader,  // webhook-id, webhook-timestamp or webhook-signature is not there
  kMalformed,      // one of them is there twice, or is not what it must be
  kTooOld,         // sent longer ago than the tolerance
  kTooNew,         // sent later than now and the tolerance: a clock is wrong
  kNoMatch,        // no signature is one of our keys'
};
[[nodiscard]] std::string_view word_of(WebhookFault fault);  // missing_header, malformed, …

struct VerifiedWebhook {
  std::string id;  // webhook-id: the same on every attempt
  Time sent{};     // webhook-timestamp: of this attempt
};

struct WebhookRefusal {
  WebhookFault fault = WebhookFault::kMalformed;
  std::string detail;  // for the log: no key, no signature, and no byte of the request
};

using WebhookVerdict = std::variant<VerifiedWebhook, WebhookRefusal>;

class WebhookVerifier {
 public:
  static constexpr Duration kToleranceDefault = std::chrono::minutes(5);

  // The keys of the sender: `whsec_` secrets (HMAC-SHA-256, signatures `v1`) and `whpk_` public
  // keys (Ed25519, `v1a`). One match is enough, so during a change of keys both are given. Errors
  // (HX1001) tell a key by its place, counted from 1, and no byte of it.
  [[nodiscard]] static Result<WebhookVerifier> make(std::span<const std::string_view> keys,
                                                    Duration tolerance = kToleranceDefault);

  // `header` is all of the request's, names in any case. `body` is as it was received: JSON that
  // was parsed and written again is not what was signed. `now` is milliseconds since 1970 on the
  // receiver's clock (time_from_ms). A refusal tells the sender nothing it does not know.
  [[nodiscard]] WebhookVerdict verify(std::span<const Header> header, std::string_view body,
                                      Time now) const;

 private:
  explicit WebhookVerifier(Duration tolerance) : tolerance_(tolerance) {}

  [[nodiscard]] bool matches(std::string_view signature,
                             std::span<const std::string_view> content) const;

  std::vector<std::string> secrets_;
  std::vector<std::string> public_keys_;
  Duration tolerance_;
};

}  // namespace hapax
