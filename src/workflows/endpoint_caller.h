// How an endpoint is reached, whatever is sent: its URL, header fields, credentials and limits.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <hapax/result.h>
#include <hapax/time.h>

#include "client/access_tokens.h"
#include "delivery/endpoint_settings.h"
#include "ports/clock.h"
#include "webhook/sender.h"
#include "workflows/secrets.h"
#include "workflows/wait_notes.h"

namespace hapax::workflows {

// What reaching any endpoint of a workflow takes. All of it outlives whoever is given it.
struct EndpointReach {
  webhook::Sender& sender;
  ports::Clock& clock;
  SecretScope secrets{};
  webhook::ForwardProxy proxy{};
  std::shared_ptr<WaitNote> note{};  // of the endpoint; none: nobody asks
};

// Not one byte of a request left, for no fault of the endpoint.
struct NothingSent {
  std::string reason{};
  Duration after{0};  // before which trying again is not wanted
};

class EndpointCaller : public std::enable_shared_from_this<EndpointCaller> {
 public:
  using Answer = std::variant<webhook::SendReply, NothingSent>;
  using Done = std::function<void(const Answer&)>;

  // kPreconditionFailed, kNotFound: a secret is not there; kForbidden: it uses what a workflow that
  // came over the API may not; kInvalidArgument: a request could never be sent.
  [[nodiscard]] static Result<std::shared_ptr<const EndpointCaller>> make(
      const delivery::HttpTarget& target, const EndpointReach& reach);

  // What all requests to the endpoint have in common.
  [[nodiscard]] const webhook::SendRequest& blank() const { return blank_; }
  // With an access token, if the endpoint wants one. `done` runs once, on any thread, maybe before
  // this returns.
  void send(webhook::SendRequest request, Done done) const;
  // Requests that wait for a token end: nothing is sent any more.
  void let_go() const;

 private:
  struct Attempt;

  EndpointCaller(webhook::Sender& sender, webhook::SendRequest blank,
                 std::shared_ptr<client::AccessTokens> tokens)
      : sender_(sender), blank_(std::move(blank)), tokens_(std::move(tokens)) {}
  static void go(const std::shared_ptr<Attempt>& attempt);
  static void go_with(const std::shared_ptr<Attempt>& attempt, const std::string& token);

  webhook::Sender& sender_;
  const webhook::SendRequest blank_;
  const std::shared_ptr<client::AccessTokens> tokens_;  // none: requests need no token
};

}  // namespace hapax::workflows
