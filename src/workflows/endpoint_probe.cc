#include "workflows/endpoint_probe.h"

#include <variant>

namespace hapax::workflows {

namespace {

constexpr std::string_view kPlace = "{key}";

std::string url_for(const std::string& form, const std::string& key) {
  std::string url = form;
  for (auto at = url.find(kPlace); at != std::string::npos; at = url.find(kPlace, at)) {
    url.replace(at, kPlace.size(), key);
    at += key.size();
  }
  return url;
}

delivery::OutcomeProbe::Told told_by(const webhook::SendReply& reply) {
  using Told = delivery::OutcomeProbe::Told;
  if (reply.ending != webhook::SendEnding::kAnswered) return Told::kNothing;
  if (reply.status >= 200 && reply.status < 300) return Told::kDelivered;
  return reply.status == 404 ? Told::kNotArrived : Told::kNothing;
}

}  // namespace

Result<std::unique_ptr<EndpointProbe>> EndpointProbe::make(const delivery::HttpTarget& target,
                                                           const EndpointReach& reach) {
  const std::string& form = std::get<delivery::NatureProbe>(target.nature).status_url.text();
  const bool changes = delivery::needs_stored_secret(target);
  auto make = [target, reach, form]() -> Result<std::shared_ptr<const EndpointCaller>> {
    HAPAX_TRY(auto caller, EndpointCaller::make(target, reach));
    webhook::SendRequest sample = caller->blank();
    sample.url = url_for(form, "0");
    sample.method = "GET";
    HAPAX_CHECK(webhook::check_request(sample));
    return caller;
  };
  std::unique_ptr<EndpointProbe> probe(
      new EndpointProbe(form, std::move(make), changes ? reach.secrets.stored : nullptr));
  if (!changes) HAPAX_CHECK(probe->caller_.get());
  return probe;
}

void EndpointProbe::ask(const std::string& key, Done done) {
  const auto caller = caller_.get();
  if (!caller) return done(Told::kNothing);
  webhook::SendRequest request = (*caller)->blank();
  request.url = url_for(form_, key);
  request.method = "GET";
  (*caller)->send(std::move(request), [done = std::move(done)](const EndpointCaller::Answer& it) {
    const auto* reply = std::get_if<webhook::SendReply>(&it);
    done(reply == nullptr ? Told::kNothing : told_by(*reply));
  });
}

}  // namespace hapax::workflows
