// Who may come in: from a credential to a caller, for every door. Implemented by the process, which
// knows keys, tokens and limits. Used from every thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <hapax/result.h>
#include <hapax/time.h>

#include "access/caller.h"

namespace hapax::access {

// Who calls, and how long that holds.
struct Admission {
  Caller caller;
  Time until = Time::max();   // wall time from which on the credential is over
  std::uint64_t edition = 0;  // of the keys and tokens that it was checked against
};

class Authenticator {
 public:
  Authenticator() = default;
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;
  virtual ~Authenticator() = default;

  // `credential` is what stood behind "Bearer " or in AUTH. A refusal is in words for the client.
  [[nodiscard]] virtual Result<Admission> authenticate(std::string_view credential,
                                                       std::string_view peer) = 0;
  // A5: An admission that is kept, for a connection or for a request that waits, is asked for
  // before each use: it ends with its credential, and with the keys and tokens that it was checked
  // against.
  [[nodiscard]] virtual bool holds(const Admission& admission) = 0;
  // Who calls without a credential; none: nobody may.
  [[nodiscard]] virtual const std::optional<Caller>& anybody() const = 0;
};

}  // namespace hapax::access
