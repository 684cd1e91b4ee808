#include "workflows/endpoint_caller.h"

#include "digest/base64.h"

namespace hapax::workflows {

namespace {

using delivery::HttpTarget;

Status add_auth(const HttpTarget& target, const SecretScope& secrets,
                webhook::SendRequest& request) {
  if (const auto* basic = std::get_if<delivery::BasicAuth>(&target.auth)) {
    HAPAX_TRY(const std::string user, reveal(basic->user, secrets));
    HAPAX_TRY(const std::string password, reveal(basic->password, secrets));
    request.headers.emplace_back("Authorization",
                                 "Basic " + digest::encode_base64(user + ':' + password));
  } else if (const auto* bearer = std::get_if<delivery::BearerAuth>(&target.auth)) {
    HAPAX_TRY(const std::string token, reveal(bearer->token, secrets));
    request.headers.emplace_back("Authorization", "Bearer " + token);
  } else if (const auto* mutual = std::get_if<delivery::MutualTlsAuth>(&target.auth)) {
    request.tls.certificate_file = mutual->certificate_file;
    request.tls.key_file = mutual->key_file;
  }
  return Ok{};
}

// How the target is reached, whatever is sent.
void add_way(const HttpTarget& target, const EndpointReach& reach, webhook::SendRequest& request) {
  request.connect_timeout = target.timeouts.connect;
  request.total_timeout = target.timeouts.request;
  request.tls.ca_file = target.tls.ca_file;
  request.tls.verify = target.tls.verify;
  request.tls.server_name = target.tls.server_name;
  request.proxy = reach.proxy;
  // U3: an address that a tenant names is judged; the operator of the server may name any.
  request.guarded = reach.secrets.declared_in == delivery::DeclaredIn::kApi;
}

// U2: the files of the server are the operator's.
Status check_files(const HttpTarget& target, const EndpointReach& reach) {
  if (reach.secrets.declared_in != delivery::DeclaredIn::kApi) return Ok{};
  const bool named =
      !target.tls.ca_file.empty() || std::holds_alternative<delivery::MutualTlsAuth>(target.auth);
  if (!named) return Ok{};
  return Error{Errc::kForbidden,
               "a workflow that was declared over the API may name no files of the server "
               "(tls.caFile, auth.certificate, auth.key)"};
}

Result<webhook::SendRequest> blank_request(const HttpTarget& target, const EndpointReach& reach) {
  HAPAX_CHECK(check_files(target, reach));
  webhook::SendRequest request{.url = target.url.text(),
                               .method = std::string(delivery::word_for(target.method))};
  add_way(target, reach, request);
  for (const delivery::EndpointHeader& header : target.headers) {
    HAPAX_TRY(std::string value, reveal(header.value, reach.secrets));
    request.headers.emplace_back(header.name, std::move(value));
  }
  HAPAX_CHECK(add_auth(target, reach.secrets, request));
  HAPAX_CHECK(webhook::check_request(request));
  return request;
}

// Nothing unless the target wants tokens.
Result<std::shared_ptr<client::AccessTokens>> tokens_for(const HttpTarget& target,
                                                         const EndpointReach& reach) {
  const auto* oauth = std::get_if<delivery::OAuth2Auth>(&target.auth);
  if (oauth == nullptr) return std::shared_ptr<client::AccessTokens>();
  HAPAX_TRY(const std::string id, reveal(oauth->client_id, reach.secrets));
  HAPAX_TRY(const std::string secret, reveal(oauth->client_secret, reach.secrets));
  webhook::SendRequest request = client::token_request({.url = oauth->token_url.text(),
                                                        .client_id = id,
                                                        .client_secret = secret,
                                                        .scope = oauth->scope});
  add_way(target, reach, request);
  request.tls.server_name.clear();  // It is another host.
  HAPAX_CHECK(webhook::check_request(request));
  return std::make_shared<client::AccessTokens>(
      [request, &sender = reach.sender](webhook::OnReply done) {
        return sender.start(request, std::move(done));
      },
      reach.clock);
}

}  // namespace

// One request that needs an access token. A token that is refused is replaced once: the endpoint
// answered 401 before it did anything.
struct EndpointCaller::Attempt {
  std::shared_ptr<const EndpointCaller> caller;
  webhook::SendRequest request;
  Done done;
  bool refused = false;
};

Result<std::shared_ptr<const EndpointCaller>> EndpointCaller::make(const HttpTarget& target,
                                                                   const EndpointReach& reach) {
  HAPAX_TRY(webhook::SendRequest blank, blank_request(target, reach));
  HAPAX_TRY(auto tokens, tokens_for(target, reach));
  return std::shared_ptr<const EndpointCaller>(
      new EndpointCaller(reach.sender, std::move(blank), std::move(tokens)));
}

void EndpointCaller::send(webhook::SendRequest request, Done done) const {
  if (tokens_) {
    return go(std::make_shared<Attempt>(
        Attempt{shared_from_this(), std::move(request), std::move(done)}));
  }
  const bool begun =
      sender_.start(std::move(request), [done](const webhook::SendReply& reply) { done(reply); });
  if (!begun) done(NothingSent{});
}

void EndpointCaller::let_go() const {
  if (tokens_) tokens_->let_go();
}

void EndpointCaller::go_with(const std::shared_ptr<Attempt>& attempt, const std::string& token) {
  constexpr int kUnauthorized = 401;
  webhook::SendRequest request = attempt->request;
  request.headers.emplace_back("Authorization", "Bearer " + token);
  const EndpointCaller& caller = *attempt->caller;
  const bool begun =
      caller.sender_.start(std::move(request), [attempt, token](const webhook::SendReply& reply) {
        const bool unauthorized =
            reply.ending == webhook::SendEnding::kAnswered && reply.status == kUnauthorized;
        if (unauthorized) attempt->caller->tokens_->refused(token);
        if (unauthorized && !std::exchange(attempt->refused, true)) return go(attempt);
        attempt->done(reply);
      });
  if (!begun) attempt->done(NothingSent{});
}

void EndpointCaller::go(const std::shared_ptr<Attempt>& attempt) {
  attempt->caller->tokens_->use([attempt](const client::TokenAnswer& answer) {
    if (const auto* none = std::get_if<client::NoToken>(&answer)) {
      return attempt->done(NothingSent{none->reason, none->after});
    }
    go_with(attempt, std::get<client::AccessToken>(answer).text);
  });
}

}  // namespace hapax::workflows
