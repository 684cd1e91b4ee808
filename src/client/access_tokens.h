// Access tokens of OAuth 2.0 client credentials (RFC 6749 §4.4). A token is fetched when somebody
// needs one, once for all who wait for it, and used until shortly before it ends. From any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <hapax/time.h>

#include "base/mutex.h"
#include "ports/clock.h"
#include "webhook/exchange.h"
#include "webhook/origins.h"

namespace hapax::client {

struct NoToken {
  std::string reason;  // for people; no byte of a secret, and none that the server chose but a word
  Duration after{0};   // before which asking again is not wanted
};
struct AccessToken {
  std::string text;
  Duration lasts{0};
};
using TokenAnswer = std::variant<AccessToken, NoToken>;

// The request for a token, without what it has in common with others.
struct TokenQuestion {
  std::string url;
  std::string client_id;
  std::string client_secret;
  std::string scope{};
};
[[nodiscard]] webhook::SendRequest token_request(const TokenQuestion& question);
[[nodiscard]] TokenAnswer read_token_reply(const webhook::SendReply& reply);

class AccessTokens : public std::enable_shared_from_this<AccessTokens> {
 public:
  // Sends the request for a token; false: nothing is sent any more.
  using Fetch = std::function<bool(webhook::OnReply)>;
  using Use = std::function<void(const TokenAnswer&)>;

  // The clock outlives it. Held by a shared pointer, which a request under way shares.
  AccessTokens(Fetch fetch, ports::Clock& clock) : fetch_(std::move(fetch)), clock_(clock) {}

  // `use` runs once: now if there is a token, or when it came.
  void use(Use use);
  // Whoever waits for a token is told that there is none: nothing is sent any more.
  void let_go() { fetched(NoToken{"access token: the sender stops"}); }
  // Somebody did not accept that token: it is not used any more.
  void refused(std::string_view token);

 private:
  void fetched(const TokenAnswer& answer);

  const Fetch fetch_;
  ports::Clock& clock_;
  base::Mutex mutex_;
  AccessToken token_ HAPAX_GUARDED_BY(mutex_);  // empty: there is none
  std::int64_t use_until_ms_ HAPAX_GUARDED_BY(mutex_) = 0;
  std::vector<Use> waiting_ HAPAX_GUARDED_BY(mutex_);  // a request for one is under way, if any
};

}  // namespace hapax::client
