// The reception of this process: its guard, the limits of its tenants, and a line in the log for
// whoever was turned away.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include <hapax/store.h>

#include "auth/guard.h"
#include "config/config.h"
#include "front/reception.h"
#include "ports/clock.h"
#include "serve/log.h"

namespace hapax::serve {

// What each tenant may ask for, as a configuration says.
[[nodiscard]] front::Accounts::LimitsOf limits_of(const config::Tenants& tenants);
// And of the store. Who has to sign in is one of several tenants, and has a fair share by default.
[[nodiscard]] ShareOf shares_of(const config::Tenants& tenants, const config::Auth& auth);
// Whether its keys and tokens are there and can be used.
[[nodiscard]] Status check_auth_files(const config::Auth& auth);
// What the guard needs to know of a configuration.
[[nodiscard]] auth::Settings guard_settings(const config::Auth& auth);

class Reception final : public front::Reception {
 public:
  // Reads every file of keys and tokens. Without any configured, everybody may come in.
  static Result<std::unique_ptr<Reception>> open(const config::Auth& auth,
                                                 front::Accounts& accounts, ports::Clock& clock,
                                                 Log& log);

  [[nodiscard]] Result<front::Admission> admit(std::string_view credential,
                                               std::string_view peer) override;
  [[nodiscard]] bool holds(const front::Admission& admission) override;
  [[nodiscard]] const std::optional<front::Caller>& anybody() const override { return anybody_; }

  // Keys and tokens anew; on an error the old ones stay. Whether anybody must sign in at all does
  // not change while the process runs.
  [[nodiscard]] Status reload(const config::Auth& auth);

 private:
  Reception(front::Accounts& accounts, ports::Clock& clock, Log& log)
      : accounts_(accounts), clock_(clock), log_(log) {}

  front::Accounts& accounts_;
  ports::Clock& clock_;
  Log& log_;
  std::optional<auth::GuardPost> post_;
  std::optional<front::Caller> anybody_;
  std::atomic<std::uint64_t> edition_ = 0;
};

}  // namespace hapax::serve
