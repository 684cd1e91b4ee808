// Why a credential was not accepted: a class that the client may be told, and a reason for the log.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include <hapax/result.h>

namespace hapax::auth {

// A1: Before a signature or a secret was proven, a client learns only whether the form of its
// credential was right: kForm or kInvalid.
enum class CredentialFault : std::uint8_t {
  kForm,       // not a credential at all, or one with a typing error
  kInvalid,    // a credential, but not one of ours: unknown, revoked, changed, badly signed
  kClaims,     // signed by one of our keys, but what it says cannot be used
  kExpired,    // it was good once
  kEarly,      // it will be good later
  kElsewhere,  // for another service, or from another issuer
  kNoTenant,   // it names no tenant
  kNoRole,     // it gives no role that exists here
};

struct Refusal {
  CredentialFault fault = CredentialFault::kInvalid;
  std::string reason;  // for the log; without a byte of the credential that is secret
};

template <class Value>
using Either = std::variant<Value, Refusal>;

// What the client is told.
[[nodiscard]] Error told(CredentialFault fault);

}  // namespace hapax::auth
