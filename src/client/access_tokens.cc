#include "client/access_tokens.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/words.h"
#include "client/escape.h"
#include "client/webhook_sink.h"
#include "digest/base64.h"
#include "wire/strict_json.h"

namespace hapax::client {

namespace {

using webhook::SendEnding;
using webhook::SendReply;

constexpr Duration kAskAgainAfter{1'000};
constexpr Duration kLastsIfNotSaid{300'000};
constexpr Duration kLastsMax{std::chrono::hours{24}};
constexpr std::size_t kTokenBytesMax = 16 * 1024;

// As it may stand in a header field behind "Bearer ".
bool is_token(std::string_view text) {
  return !text.empty() && text.size() <= kTokenBytesMax &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// "invalid_client": the word for an error. Anything longer may repeat what was sent.
bool is_error_word(std::string_view text) {
  constexpr std::size_t kWordMax = 40;
  return !text.empty() && text.size() <= kWordMax &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

std::optional<std::string> text_of(const wire::JsonValue& object, std::string_view name) {
  const wire::JsonValue* member = object.find(name);
  const auto* text = member == nullptr ? nullptr : member->get<std::string>();
  return text == nullptr ? std::nullopt : std::optional(*text);
}

NoToken refusal(const SendReply& reply) {
  std::string reason = base::format("access token: HTTP {}", reply.status);
  if (const auto json = wire::read_strict_json(reply.body)) {
    const auto word = text_of(*json, "error");
    if (word && is_error_word(*word)) reason += " " + *word;
  }
  return {std::move(reason), std::max(kAskAgainAfter, pause_asked_by(reply))};
}

Duration lasts(const wire::JsonValue& answer) {
  const wire::JsonValue* member = answer.find("expires_in");
  if (member == nullptr) return kLastsIfNotSaid;
  std::int64_t seconds = 0;
  if (const auto* whole = member->get<std::int64_t>()) seconds = *whole;
  // Some servers write the number as text.
  if (const auto* text = member->get<std::string>()) {
    for (const char c : text->substr(0, 9)) {
      if (c < '0' || c > '9') return kLastsIfNotSaid;
      seconds = seconds * 10 + (c - '0');
    }
  }
  const std::int64_t most = std::chrono::duration_cast<std::chrono::seconds>(kLastsMax).count();
  return std::chrono::seconds{std::clamp<std::int64_t>(seconds, 0, most)};
}

// A request that carries it is under way for a while.
Duration used_for(Duration lasts) { return lasts - std::min(lasts / 5, Duration{60'000}); }

}  // namespace

webhook::SendRequest token_request(const TokenQuestion& question) {
  webhook::SendRequest request{.url = question.url};
  request.headers = {
      {"Content-Type", "application/x-www-form-urlencoded"},
      {"Accept", "application/json"},
      {"Authorization", "Basic " + digest::encode_base64(encoded(question.client_id) + ':' +
                                                         encoded(question.client_secret))}};
  request.body = "grant_type=client_credentials";
  if (!question.scope.empty()) request.body += "&scope=" + encoded(question.scope);
  return request;
}

TokenAnswer read_token_reply(const SendReply& reply) {
  if (reply.ending != SendEnding::kAnswered) {
    return NoToken{"access token: " + reply.reason, kAskAgainAfter};
  }
  if (reply.status != 200) return refusal(reply);
  const auto unfit = [](std::string_view why) {
    return NoToken{base::format("access token: the answer {}", why), kAskAgainAfter};
  };
  if (reply.truncated) return unfit("is too large");
  const auto json = wire::read_strict_json(reply.body);
  if (!json) return unfit("is not JSON");
  const auto token = text_of(*json, "access_token");
  if (!token || !is_token(*token)) return unfit("holds no access_token");
  const auto type = text_of(*json, "token_type");
  if (type && !base::same_word(*type, "Bearer")) return unfit("has another token_type than Bearer");
  return AccessToken{*token, lasts(*json)};
}

void AccessTokens::use(Use use) {
  base::MutexLock lock(mutex_);
  if (!token_.text.empty() && clock_.steady_ms() < use_until_ms_) {
    const TokenAnswer answer = token_;
    lock.unlock();
    return use(answer);
  }
  waiting_.push_back(std::move(use));
  if (waiting_.size() > 1) return;
  lock.unlock();
  const bool begun = fetch_([self = shared_from_this()](const SendReply& reply) {
    self->fetched(read_token_reply(reply));
  });
  if (!begun) fetched(NoToken{"access token: the sender stops"});
}

void AccessTokens::refused(std::string_view token) {
  const base::MutexLock lock(mutex_);
  if (token_.text == token) token_ = {};
}

void AccessTokens::fetched(const TokenAnswer& answer) {
  std::vector<Use> waited;
  {
    const base::MutexLock lock(mutex_);
    if (const auto* token = std::get_if<AccessToken>(&answer)) {
      token_ = *token;
      use_until_ms_ = clock_.steady_ms() + used_for(token->lasts).count();
    }
    waited.swap(waiting_);
  }
  for (const Use& use : waited) use(answer);
}

}  // namespace hapax::client
