// An endpoint of a workflow: one record per request, with its key, signed and in the shape that the
// workflow declares.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/result.h>

#include "client/access_tokens.h"
#include "delivery/sink.h"
#include "delivery/workflow.h"
#include "envelope/content.h"
#include "ports/clock.h"
#include "signing/key_ring.h"
#include "webhook/sender.h"

namespace hapax::workflows {

// What all requests to an endpoint have in common: its URL, header fields, credentials and limits.
[[nodiscard]] Result<webhook::SendRequest> blank_request(const delivery::HttpTarget& target);

class EndpointSink final : public delivery::Sink {
 public:
  // The sender outlives the sink. kPreconditionFailed: a secret is not there; kInvalidArgument: a
  // request could never be sent.
  [[nodiscard]] static Result<std::unique_ptr<EndpointSink>> make(
      const delivery::DeliveryTerms& terms, const delivery::HttpTarget& target,
      webhook::Sender& sender, ports::Clock& clock);

  void start(std::span<const delivery::Outgoing* const> records, std::int64_t not_after_ms,
             Done done) override;
  void wind_down() override;

 private:
  // What all requests have in common. Answers are judged by it when the sink may be gone.
  struct Plan {
    webhook::SendRequest blank;
    envelope::BodyShape shape = envelope::BodyShape::kEnvelope;
    std::string event_source{};  // of a CloudEvent
    bool event_subject = false;
    std::optional<signing::KeyRing> keys{};  // nothing: requests are not signed
    std::vector<delivery::StatusRule> on_status{};
  };

  EndpointSink(webhook::Sender& sender, ports::Clock& clock, std::shared_ptr<const Plan> plan,
               std::shared_ptr<client::AccessTokens> tokens)
      : sender_(sender), clock_(clock), plan_(std::move(plan)), tokens_(std::move(tokens)) {}

  static void plan_body(Plan& plan, const delivery::DeliveryTerms& terms,
                        const delivery::EndpointBody& body);
  [[nodiscard]] static Status plan_signing(Plan& plan, const delivery::HttpTarget& target);

  [[nodiscard]] bool is_configured(std::string_view name) const;
  [[nodiscard]] Result<envelope::RequestContent> content_for(
      const delivery::Outgoing& record) const;
  [[nodiscard]] Result<webhook::SendRequest> request_for(const delivery::Outgoing& record,
                                                         const envelope::RequestContent& content,
                                                         std::int64_t not_after_ms) const;

  webhook::Sender& sender_;
  ports::Clock& clock_;
  const std::shared_ptr<const Plan> plan_;
  const std::shared_ptr<client::AccessTokens> tokens_;  // none: requests need no token
  // Requests that wait in the sender ask it, too.
  const std::shared_ptr<std::atomic<bool>> winding_down_ =
      std::make_shared<std::atomic<bool>>(false);
};

}  // namespace hapax::workflows
