// Asks an endpoint by its status URL whether it has a record: 2xx says yes, 404 says no, and
// everything else says nothing.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <hapax/result.h>

#include "delivery/endpoint_settings.h"
#include "delivery/outcome_probe.h"
#include "workflows/endpoint_caller.h"
#include "workflows/made_of_secrets.h"

namespace hapax::workflows {

class EndpointProbe final : public delivery::OutcomeProbe {
 public:
  // With the header fields and the credentials of the endpoint; stored secrets as EndpointSink.
  // REQUIRES: its nature is probe.
  [[nodiscard]] static Result<std::unique_ptr<EndpointProbe>> make(
      const delivery::HttpTarget& target, const EndpointReach& reach);

  void ask(const std::string& key, Done done) override;

 private:
  EndpointProbe(std::string form, MadeOfSecrets<EndpointCaller>::Make make, SecretBook* book)
      : form_(std::move(form)), caller_(std::move(make), book) {}

  const std::string form_;  // of the URL, with {key} in it
  MadeOfSecrets<EndpointCaller> caller_;
};

}  // namespace hapax::workflows
