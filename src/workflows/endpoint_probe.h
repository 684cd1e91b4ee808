// Asks an endpoint by its status URL whether it has a record: 2xx says yes, 404 says no, and
// everything else says nothing.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <hapax/result.h>

#include "delivery/endpoint_settings.h"
#include "delivery/outcome_probe.h"
#include "webhook/sender.h"

namespace hapax::workflows {

class EndpointProbe final : public delivery::OutcomeProbe {
 public:
  // The sender outlives the probe. With the header fields and the credentials of the endpoint.
  // REQUIRES: its nature is probe.
  [[nodiscard]] static Result<std::unique_ptr<EndpointProbe>> make(
      const delivery::HttpTarget& target, webhook::Sender& sender);

  void ask(const std::string& key, Done done) override;

 private:
  EndpointProbe(webhook::Sender& sender, webhook::SendRequest blank)
      : sender_(sender), blank_(std::move(blank)) {}

  webhook::Sender& sender_;
  const webhook::SendRequest blank_;
};

}  // namespace hapax::workflows
