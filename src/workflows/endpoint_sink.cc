#include "workflows/endpoint_sink.h"

#include <algorithm>
#include <variant>

#include "base/assert.h"
#include "base/words.h"
#include "digest/base64.h"
#include "envelope/attempt.h"
#include "workflows/answers.h"
#include "workflows/secrets.h"

namespace hapax::workflows {

namespace {

using delivery::HttpTarget;
using delivery::Outgoing;
using delivery::SendResult;

// Without a key of ours nothing can be sent, and nobody but the operator can give one.
constexpr Duration kUnsignedPause{10'000};

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

// How the target is reached, whatever is sent.
void add_way(const HttpTarget& target, webhook::SendRequest& request) {
  request.connect_timeout = target.timeouts.connect;
  request.total_timeout = target.timeouts.request;
  request.tls.ca_file = target.tls.ca_file;
  request.tls.verify = target.tls.verify;
  request.tls.server_name = target.tls.server_name;
  request.guarded = false;  // The operator of the server names the endpoint.
}

}  // namespace

Result<webhook::SendRequest> blank_request(const HttpTarget& target) {
  webhook::SendRequest request{.url = target.url.text(),
                               .method = std::string(delivery::word_for(target.method))};
  add_way(target, request);
  for (const delivery::EndpointHeader& header : target.headers) {
    HAPAX_TRY(std::string value, reveal(header.value));
    request.headers.emplace_back(header.name, std::move(value));
  }
  HAPAX_CHECK(add_auth(target, request));
  HAPAX_CHECK(webhook::check_request(request));
  return request;
}

namespace {

// Nothing unless the target wants tokens.
Result<std::shared_ptr<client::AccessTokens>> tokens_for(const HttpTarget& target,
                                                         webhook::Sender& sender,
                                                         ports::Clock& clock) {
  const auto* oauth = std::get_if<delivery::OAuth2Auth>(&target.auth);
  if (oauth == nullptr) return std::shared_ptr<client::AccessTokens>();
  HAPAX_TRY(const std::string id, reveal(oauth->client_id));
  HAPAX_TRY(const std::string secret, reveal(oauth->client_secret));
  webhook::SendRequest request = client::token_request({.url = oauth->token_url.text(),
                                                        .client_id = id,
                                                        .client_secret = secret,
                                                        .scope = oauth->scope});
  add_way(target, request);
  request.tls.server_name.clear();  // It is another host.
  HAPAX_CHECK(webhook::check_request(request));
  return std::make_shared<client::AccessTokens>(
      [request, &sender](webhook::OnReply done) { return sender.start(request, std::move(done)); },
      clock);
}

// One attempt that needs an access token. A token that is refused is replaced once: the endpoint
// answered 401 before it did anything.
struct AuthorizedAttempt {
  webhook::Sender& sender;
  std::shared_ptr<client::AccessTokens> tokens;
  webhook::SendRequest request;
  std::shared_ptr<const std::vector<delivery::StatusRule>> on_status;
  delivery::Sink::Done done;
  bool refused = false;
};

void end_unsent(const delivery::Sink::Done& done, Duration after = {}, std::string reason = {}) {
  done({SendResult{
      .outcome = SendResult::Outcome::kNotSent, .after = after, .reason = std::move(reason)}});
}

void go(const std::shared_ptr<AuthorizedAttempt>& attempt);

void go_with(const std::shared_ptr<AuthorizedAttempt>& attempt, const std::string& token) {
  constexpr int kUnauthorized = 401;
  webhook::SendRequest request = attempt->request;
  request.headers.emplace_back("Authorization", "Bearer " + token);
  const bool begun =
      attempt->sender.start(std::move(request), [attempt, token](const webhook::SendReply& reply) {
        const bool unauthorized =
            reply.ending == webhook::SendEnding::kAnswered && reply.status == kUnauthorized;
        if (unauthorized) attempt->tokens->refused(token);
        if (unauthorized && !std::exchange(attempt->refused, true)) return go(attempt);
        attempt->done({result_of(reply, *attempt->on_status)});
      });
  if (!begun) end_unsent(attempt->done);
}

void go(const std::shared_ptr<AuthorizedAttempt>& attempt) {
  attempt->tokens->use([attempt](const client::TokenAnswer& answer) {
    if (const auto* none = std::get_if<client::NoToken>(&answer)) {
      return end_unsent(attempt->done, none->after, none->reason);
    }
    go_with(attempt, std::get<client::AccessToken>(answer).text);
  });
}

}  // namespace

// The key is in the header in any case. In the body it is what idempotent-keys promises.
void EndpointSink::plan_body(Plan& plan, const delivery::DeliveryTerms& terms,
                             const delivery::EndpointBody& body) {
  using envelope::BodyShape;
  if (const auto* event = std::get_if<delivery::CloudEventBody>(&body)) {
    plan.shape =
        event->structured ? BodyShape::kCloudEventStructured : BodyShape::kCloudEventBinary;
    plan.event_source = event->source;
    plan.event_subject = event->subject == delivery::EventSubject::kKey;
    return;
  }
  bool wrapped = terms.guarantee != delivery::Guarantee::kAtLeastOnce && terms.key.in_payload;
  if (std::holds_alternative<delivery::EnvelopeBody>(body)) wrapped = true;
  if (std::holds_alternative<delivery::PayloadBody>(body)) wrapped = false;
  plan.shape = wrapped ? BodyShape::kEnvelope : BodyShape::kAsItCame;
}

Status EndpointSink::plan_signing(Plan& plan, const HttpTarget& target) {
  if (target.signing.empty()) return Ok{};
  std::vector<std::string> secrets;
  for (const delivery::SigningTerm& term : target.signing) {
    HAPAX_TRY(std::string secret, reveal(term.key));
    secrets.push_back(std::move(secret));
  }
  std::vector<signing::KeyTerm> terms;
  for (std::size_t i = 0; i < secrets.size(); ++i) {
    terms.push_back({.key = secrets[i],
                     .from = target.signing[i].from.value_or(Time::min()),
                     .until = target.signing[i].until.value_or(Time::max())});
  }
  HAPAX_TRY(plan.keys, signing::KeyRing::make(terms));
  return Ok{};
}

Result<std::unique_ptr<EndpointSink>> EndpointSink::make(const delivery::DeliveryTerms& terms,
                                                         const HttpTarget& target,
                                                         webhook::Sender& sender,
                                                         ports::Clock& clock) {
  HAPAX_TRY(webhook::SendRequest blank, blank_request(target));
  auto plan = std::make_shared<Plan>(Plan{.blank = std::move(blank)});
  plan_body(*plan, terms, target.body);
  HAPAX_CHECK(plan_signing(*plan, target));
  plan->on_status = target.on_status;
  HAPAX_TRY(auto tokens, tokens_for(target, sender, clock));
  return std::unique_ptr<EndpointSink>(
      new EndpointSink(sender, clock, std::move(plan), std::move(tokens)));
}

void EndpointSink::start(std::span<const Outgoing* const> records, std::int64_t not_after_ms,
                         Done done) {
  HAPAX_ASSERT(records.size() == 1, "an endpoint takes one record per request");
  const Outgoing& record = *records.front();
  const auto content = content_for(record);
  if (!content) {
    return done({SendResult{.outcome = SendResult::Outcome::kRejected,
                            .hopeless = true,
                            .reason = content.error().text()}});
  }
  auto request = request_for(record, *content, not_after_ms);
  if (!request) {
    // V3: what was to be signed never leaves without a signature, and the record is not to blame.
    return end_unsent(done, kUnsignedPause, request.error().detail);
  }
  if (tokens_) {
    const std::shared_ptr<const std::vector<delivery::StatusRule>> on_status(plan_,
                                                                             &plan_->on_status);
    return go(std::make_shared<AuthorizedAttempt>(
        AuthorizedAttempt{sender_, tokens_, *std::move(request), on_status, std::move(done)}));
  }
  const bool begun =
      sender_.start(*std::move(request), [done, plan = plan_](const webhook::SendReply& reply) {
        done({result_of(reply, plan->on_status)});
      });
  if (!begun) end_unsent(done);
}

void EndpointSink::wind_down() {
  *winding_down_ = true;
  if (tokens_) tokens_->let_go();
}

// A publisher does not say again what the operator said: a receiver might take the later one.
bool EndpointSink::is_configured(std::string_view name) const {
  const auto& headers = plan_->blank.headers;
  return std::any_of(headers.begin(), headers.end(), [&](const auto& header) {
    return plain_name(header.first) == plain_name(name);
  });
}

Result<envelope::RequestContent> EndpointSink::content_for(const Outgoing& record) const {
  envelope::RecordFacts facts{.key = record.id,
                              .type = record.type,
                              .time = record.time,
                              .payload = record.payload,
                              .content_type = content_type_of(record),
                              .source = plan_->event_source};
  if (plan_->event_subject) facts.subject = record.key;
  return envelope::make_content(plan_->shape, facts);
}

Result<webhook::SendRequest> EndpointSink::request_for(const Outgoing& record,
                                                       const envelope::RequestContent& content,
                                                       std::int64_t not_after_ms) const {
  std::vector<Header> published;
  for (const auto& [name, value] : record.headers) {
    if (!is_configured(name)) published.push_back({name, value});
  }
  HAPAX_TRY(const auto fields,
            envelope::attempt_fields(content, {.key = record.id,
                                               .at = time_from_ms(clock_.wall_ms()),
                                               .replay = record.replay,
                                               .keys = plan_->keys ? &*plan_->keys : nullptr,
                                               .record_headers = published}));
  webhook::SendRequest request = plan_->blank;
  for (const envelope::HeaderField& field : fields) {
    request.headers.emplace_back(field.name, field.value);
  }
  request.body = content.body.text();
  request.may_leave = [&clock = clock_, not_after_ms, winding_down = winding_down_] {
    return !*winding_down && clock.steady_ms() < not_after_ms;
  };
  return request;
}

}  // namespace hapax::workflows
