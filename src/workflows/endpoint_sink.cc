#include "workflows/endpoint_sink.h"

#include <algorithm>
#include <variant>

#include "base/assert.h"
#include "base/words.h"
#include "client/webhook_sink.h"
#include "digest/base64.h"
#include "envelope/attempt.h"
#include "workflows/secrets.h"

namespace hapax::workflows {

namespace {

using delivery::HttpTarget;
using delivery::Outgoing;
using delivery::SendResult;
using Headers = std::vector<std::pair<std::string, std::string>>;

// The key is in the header in any case. In the body it is what idempotent-keys promises.
envelope::BodyShape shape_of(const delivery::DeliveryTerms& terms) {
  const bool wrapped = terms.guarantee != delivery::Guarantee::kAtLeastOnce && terms.key.in_payload;
  return wrapped ? envelope::BodyShape::kEnvelope : envelope::BodyShape::kAsItCame;
}

// What it was published with.
std::string_view content_type_of(const Outgoing& record) {
  for (const auto& [name, value] : record.headers) {
    if (base::lower(name) == "content-type") return value;
  }
  return {};
}

// Some servers take '_' for '-'.
std::string plain_name(std::string_view name) {
  std::string plain = base::lower(name);
  std::replace(plain.begin(), plain.end(), '_', '-');
  return plain;
}

Status add_auth(const HttpTarget& target, webhook::SendRequest& request) {
  if (const auto* basic = std::get_if<delivery::BasicAuth>(&target.auth)) {
    HAPAX_TRY(const std::string user, reveal(basic->user));
    HAPAX_TRY(const std::string password, reveal(basic->password));
    request.headers.emplace_back("Authorization",
                                 "Basic " + digest::encode_base64(user + ':' + password));
  } else if (const auto* bearer = std::get_if<delivery::BearerAuth>(&target.auth)) {
    HAPAX_TRY(const std::string token, reveal(bearer->token));
    request.headers.emplace_back("Authorization", "Bearer " + token);
  } else if (const auto* mutual = std::get_if<delivery::MutualTlsAuth>(&target.auth)) {
    request.tls.certificate_file = mutual->certificate_file;
    request.tls.key_file = mutual->key_file;
  }
  return Ok{};
}

}  // namespace

Result<webhook::SendRequest> blank_request(const HttpTarget& target) {
  webhook::SendRequest request{.url = target.url.text(),
                               .method = std::string(delivery::word_for(target.method))};
  for (const delivery::EndpointHeader& header : target.headers) {
    HAPAX_TRY(std::string value, reveal(header.value));
    request.headers.emplace_back(header.name, std::move(value));
  }
  request.connect_timeout = target.timeouts.connect;
  request.total_timeout = target.timeouts.request;
  request.tls.ca_file = target.tls.ca_file;
  request.tls.verify = target.tls.verify;
  request.guarded = false;  // The operator of the server names the endpoint.
  HAPAX_CHECK(add_auth(target, request));
  HAPAX_CHECK(webhook::check_request(request));
  return request;
}

Result<std::unique_ptr<EndpointSink>> EndpointSink::make(const delivery::DeliveryTerms& terms,
                                                         const HttpTarget& target,
                                                         webhook::Sender& sender,
                                                         ports::Clock& clock) {
  HAPAX_TRY(webhook::SendRequest blank, blank_request(target));
  return std::unique_ptr<EndpointSink>(
      new EndpointSink(sender, clock, std::move(blank), shape_of(terms)));
}

void EndpointSink::start(std::span<const Outgoing* const> records, std::int64_t not_after_ms,
                         Done done) {
  HAPAX_ASSERT(records.size() == 1, "an endpoint takes one record per request");
  auto request = request_for(*records.front(), not_after_ms);
  if (!request) {
    return done(
        {SendResult{.outcome = SendResult::Outcome::kRejected, .reason = request.error().text()}});
  }
  const bool begun = sender_.start(*std::move(request), [done](const webhook::SendReply& reply) {
    done({client::send_result_of(reply)});
  });
  if (!begun) done({SendResult{.outcome = SendResult::Outcome::kNotSent}});
}

// A publisher does not say again what the operator said: a receiver might take the later one.
bool EndpointSink::is_configured(std::string_view name) const {
  return std::any_of(blank_.headers.begin(), blank_.headers.end(), [&](const auto& header) {
    return plain_name(header.first) == plain_name(name);
  });
}

Result<webhook::SendRequest> EndpointSink::request_for(const Outgoing& record,
                                                       std::int64_t not_after_ms) const {
  const envelope::RecordFacts facts{.key = record.id,
                                    .type = record.type,
                                    .time = record.time,
                                    .payload = record.payload,
                                    .content_type = content_type_of(record)};
  HAPAX_TRY(const envelope::RequestContent content, envelope::make_content(shape_, facts));
  std::vector<Header> published;
  for (const auto& [name, value] : record.headers) {
    if (!is_configured(name)) published.push_back({name, value});
  }
  HAPAX_TRY(const auto fields,
            envelope::attempt_fields(content, {.key = record.id,
                                               .at = time_from_ms(clock_.wall_ms()),
                                               .replay = record.replay,
                                               .record_headers = published}));
  webhook::SendRequest request = blank_;
  for (const envelope::HeaderField& field : fields) {
    request.headers.emplace_back(field.name, field.value);
  }
  request.body = content.body.text();
  request.may_leave = [&clock = clock_, not_after_ms] { return clock.steady_ms() < not_after_ms; };
  return request;
}

}  // namespace hapax::workflows
