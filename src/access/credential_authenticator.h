// Authenticates by keys and tokens (auth), and gives each caller the account of its tenant.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "access/authenticator.h"
#include "auth/verifier.h"
#include "ports/clock.h"

namespace hapax::access {

class CredentialAuthenticator final : public Authenticator {
 public:
  // Somebody was turned away; the reason is for the log.
  using Refused = std::function<void(std::string_view peer, const std::string& reason)>;
  using Settings = std::optional<auth::VerifierSettings>;

  // Reads every file of keys and tokens. Without settings everybody may come in.
  static Result<std::unique_ptr<CredentialAuthenticator>> open(const Settings& settings,
                                                               auth::ReadFile read_file,
                                                               Accounts& accounts,
                                                               ports::Clock& clock,
                                                               Refused refused);

  [[nodiscard]] Result<Admission> authenticate(std::string_view credential,
                                               std::string_view peer) override;
  [[nodiscard]] bool holds(const Admission& admission) override;
  [[nodiscard]] const std::optional<Caller>& anybody() const override { return anybody_; }

  // Keys and tokens anew; on an error the old ones stay. Whether anybody must sign in at all does
  // not change while the process runs.
  [[nodiscard]] Status reload(const Settings& settings);

 private:
  CredentialAuthenticator(auth::ReadFile read_file, Accounts& accounts, ports::Clock& clock,
                          Refused refused)
      : read_file_(std::move(read_file)),
        accounts_(accounts),
        clock_(clock),
        refused_(std::move(refused)) {}

  const auth::ReadFile read_file_;
  Accounts& accounts_;
  ports::Clock& clock_;
  const Refused refused_;
  std::optional<auth::CurrentVerifier> verifier_;
  std::optional<Caller> anybody_;
  std::atomic<std::uint64_t> edition_ = 0;
};

}  // namespace hapax::access
