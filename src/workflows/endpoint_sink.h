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

#include "delivery/sink.h"
#include "delivery/workflow.h"
#include "envelope/content.h"
#include "signing/key_ring.h"
#include "workflows/endpoint_caller.h"
#include "workflows/made_of_secrets.h"

namespace hapax::workflows {

class EndpointSink final : public delivery::Sink {
 public:
  // A target that needs a stored secret makes a sink in any case: until it has all of them it sends
  // nothing and says what it waits for, and it takes changed ones into use by itself. Of another
  // target: an error as EndpointCaller::make().
  [[nodiscard]] static Result<std::unique_ptr<EndpointSink>> make(
      const delivery::DeliveryTerms& terms, const delivery::HttpTarget& target,
      const EndpointReach& reach);

  // The request that start() would make of the record now, which nobody sends.
  [[nodiscard]] Result<webhook::SendRequest> draft(const delivery::Outgoing& record);
  void start(std::span<const delivery::Outgoing* const> records, std::int64_t not_after_ms,
             Done done) override;
  void wind_down() override;

 private:
  // What all requests have in common. Answers are judged by it when the sink may be gone.
  struct Plan {
    std::shared_ptr<const EndpointCaller> caller;
    envelope::BodyShape shape = envelope::BodyShape::kEnvelope;
    std::string event_source{};  // of a CloudEvent
    bool event_subject = false;
    std::optional<signing::KeyRing> keys{};  // nothing: requests are not signed
    std::vector<delivery::StatusRule> on_status{};

    void let_go() const { caller->let_go(); }
  };

  EndpointSink(const EndpointReach& reach, MadeOfSecrets<Plan>::Make make, SecretBook* book)
      : clock_(reach.clock), note_(reach.note), plan_(std::move(make), book) {}

  [[nodiscard]] static Result<std::shared_ptr<const Plan>> make_plan(
      const delivery::DeliveryTerms& terms, const delivery::HttpTarget& target,
      const EndpointReach& reach);
  [[nodiscard]] static Result<envelope::RequestContent> content_of(
      const Plan& plan, const delivery::Outgoing& record);
  static void plan_body(Plan& plan, const delivery::DeliveryTerms& terms,
                        const delivery::EndpointBody& body);
  [[nodiscard]] static Status plan_signing(Plan& plan, const delivery::HttpTarget& target,
                                           const SecretScope& secrets);

  [[nodiscard]] Result<webhook::SendRequest> request_for(const Plan& plan,
                                                         const delivery::Outgoing& record,
                                                         const envelope::RequestContent& content,
                                                         std::int64_t not_after_ms) const;

  ports::Clock& clock_;
  const std::shared_ptr<WaitNote> note_;
  MadeOfSecrets<Plan> plan_;
  // Requests that wait in the sender ask it, too.
  const std::shared_ptr<std::atomic<bool>> winding_down_ =
      std::make_shared<std::atomic<bool>>(false);
};

}  // namespace hapax::workflows
