#include "access/credential_authenticator.h"

#include <utility>

namespace hapax::access {

Result<std::unique_ptr<CredentialAuthenticator>> CredentialAuthenticator::open(
    const Settings& settings, auth::ReadFile read_file, Accounts& accounts, ports::Clock& clock,
    Refused refused) {
  std::unique_ptr<CredentialAuthenticator> made(
      new CredentialAuthenticator(std::move(read_file), accounts, clock, std::move(refused)));
  if (settings) {
    HAPAX_TRY(auto verifier, auth::Verifier::build(*settings, made->read_file_));
    made->verifier_.emplace(std::move(verifier));
  } else {
    made->anybody_ = Caller{{"", std::string(kAnybody), Rights::all()}, accounts.of("")};
  }
  return made;
}

Result<Admission> CredentialAuthenticator::authenticate(std::string_view credential,
                                                        std::string_view peer) {
  if (!verifier_) {
    return Error{Errc::kUnauthenticated, "this server has no authentication; do not sign in"};
  }
  // Read before the verifier is taken: what an older one says is asked again, never the reverse.
  const std::uint64_t edition = edition_.load();
  auth::Authentication found =
      verifier_->verifier()->authenticate(credential, time_from_ms(clock_.wall_ms()));
  if (!found.identity) {
    refused_(peer, found.reason);
    return std::move(found.identity).error();
  }
  auto account = accounts_.of(found.identity->tenant);
  return Admission{Caller{*std::move(found.identity), std::move(account)}, found.until, edition};
}

bool CredentialAuthenticator::holds(const Admission& admission) {
  if (admission.edition != edition_.load()) return false;
  return admission.until == Time::max() || time_from_ms(clock_.wall_ms()) < admission.until;
}

Status CredentialAuthenticator::reload(const Settings& settings) {
  if (settings.has_value() != verifier_.has_value()) {
    return Error{Errc::kPreconditionFailed,
                 "whether anybody must sign in does not change while the server runs; restart it"};
  }
  if (!verifier_) return Ok{};
  HAPAX_CHECK(verifier_->reload(*settings, read_file_));
  ++edition_;
  return Ok{};
}

}  // namespace hapax::access
