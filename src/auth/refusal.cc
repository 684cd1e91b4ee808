#include "auth/refusal.h"

namespace hapax::auth {

Error told(CredentialFault fault) {
  switch (fault) {
    case CredentialFault::kForm:
      return {Errc::kUnauthenticated,
              "this is not a credential as it was handed out; check that it was copied whole"};
    case CredentialFault::kInvalid:
      return {Errc::kUnauthenticated,
              "the credential is not valid here; get a new one, or ask who runs the server"};
    case CredentialFault::kClaims:
      return {Errc::kUnauthenticated,
              "a claim of the token is missing or has the wrong form; the server's log says which"};
    case CredentialFault::kExpired:
      return {Errc::kUnauthenticated, "the credential is over; get a new one"};
    case CredentialFault::kEarly:
      return {Errc::kUnauthenticated,
              "the credential is not valid yet; wait, or compare the clocks of issuer and server"};
    case CredentialFault::kElsewhere:
      return {Errc::kUnauthenticated,
              "the token is from another issuer or for another service; get one for this server"};
    case CredentialFault::kNoTenant:
      return {Errc::kForbidden,
              "the token names no tenant that can be one; ask its issuer for the tenant's claim"};
    case CredentialFault::kNoRole:
      return {Errc::kForbidden,
              "the credential gives no role of this server; ask for one with produce, consume, "
              "admin or read-bodies"};
  }
  return {Errc::kUnauthenticated, "the credential is not valid here"};
}

}  // namespace hapax::auth
