#include "workflows/endpoint_probe.h"

#include <variant>

#include "workflows/endpoint_sink.h"

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
                                                           webhook::Sender& sender) {
  HAPAX_TRY(webhook::SendRequest blank, blank_request(target));
  blank.url = std::get<delivery::NatureProbe>(target.nature).status_url.text();
  blank.method = "GET";
  webhook::SendRequest sample = blank;
  sample.url = url_for(blank.url, "0");
  HAPAX_CHECK(webhook::check_request(sample));
  return std::unique_ptr<EndpointProbe>(new EndpointProbe(sender, std::move(blank)));
}

void EndpointProbe::ask(const std::string& key, Done done) {
  webhook::SendRequest request = blank_;
  request.url = url_for(blank_.url, key);
  const bool begun = sender_.start(
      std::move(request), [done](const webhook::SendReply& reply) { done(told_by(reply)); });
  if (!begun) done(Told::kNothing);
}

}  // namespace hapax::workflows
