// Claims in the application's own database (JobClaims), behind the port of the suite of claims.
#pragma once

#include <vector>

#include "claim_backend.h"

namespace hapax::contract {

// One over a PostgreSQL server of the test program's own, one over a file of SQLite.
[[nodiscard]] std::vector<ClaimBackendKind> job_claim_backends();

}  // namespace hapax::contract
