// What a configuration says of tenants: who may sign in, and what each may ask for and take.
#pragma once

#include <optional>
#include <string>

#include <hapax/store.h>

#include "access/account.h"
#include "auth/verifier.h"
#include "config/config.h"

namespace hapax::serve {

// What each tenant may ask for, as a configuration says.
[[nodiscard]] access::Accounts::LimitsOf limits_of(const config::Tenants& tenants);
// And of the store. Who has to sign in is one of several tenants, and has a fair share by default.
[[nodiscard]] ShareOf shares_of(const config::Tenants& tenants, const config::Auth& auth);
// Whether its keys and tokens are there and can be used.
[[nodiscard]] Status check_auth_files(const config::Auth& auth);
// None: nobody has to sign in.
[[nodiscard]] std::optional<auth::VerifierSettings> verifier_settings(const config::Auth& auth);

}  // namespace hapax::serve
