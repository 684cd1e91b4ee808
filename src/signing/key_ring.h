// The keys that an endpoint's requests are signed with. Several may be in use at once, so that a
// receiver can change to a new key before the old one ends.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

#include "digest/sign.h"

namespace hapax::signing {

// A key and when requests are signed with it: from `from` on, and before `until`.
struct KeyTerm {
  std::string_view key;  // whsec_… or whsk_…
  Time from = Time::min();
  Time until = Time::max();
};

// What is signed: a request of one attempt.
struct SignedRequest {
  std::string_view id;  // webhook-id
  Time at;              // of the attempt
  std::span<const std::string_view> body;
};

class KeyRing {
 public:
  // kInvalidArgument for a key that cannot sign, a term that ends before it begins, and no key at
  // all. The error tells which key by its place, counted from 1, and no byte of it.
  [[nodiscard]] static Result<KeyRing> make(std::span<const KeyTerm> terms);

  // The value of webhook-signature: a signature for each key in use at that time, in the order in
  // which they were given. kPreconditionFailed if none is: what was to be signed is never sent
  // without a signature. kInvalidArgument for an id that cannot be a webhook-id.
  [[nodiscard]] Result<std::string> sign(const SignedRequest& request) const;

 private:
  struct Held {
    std::string shared;  // of HMAC; empty: Ed25519
    std::optional<digest::Ed25519Key> pair{};
    Time from;
    Time until;
  };
  std::vector<Held> keys_;
};

// The value of webhook-timestamp: seconds since 1970, rounded down.
[[nodiscard]] std::string webhook_timestamp(Time at);

}  // namespace hapax::signing
