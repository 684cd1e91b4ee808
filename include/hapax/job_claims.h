// The right to do the work behind a key, for one worker at a time, in the application's database. A
// claim is never lost with its worker: when the lease has run out, another one may take it over,
// and the late worker is refused by its fence; or the outcome is unknown, until somebody decides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hapax/database.h>
#include <hapax/limits.h>
#include <hapax/ops.h>
#include <hapax/time.h>
#include <hapax/verdicts.h>

namespace hapax {

enum class JobStatus : std::uint8_t { kNotSeen, kProcessing, kCompleted, kFailed, kUnknown };
[[nodiscard]] std::string_view word_of(JobStatus status);  // not_seen, processing …

class JobClaims {
 public:
  JobClaims(Database& database, std::string scope)
      : database_(database), scope_(std::move(scope)) {}

  // Claimed: work, and settle with its fence; it tells what became of earlier owners.
  // DuplicateClaim: completed before, with this outcome. InProgress: another worker holds it.
  // Conflict: the key is known with other content. UnknownOutcome: it may have been done, and is
  // done again only after it was resolved. Outside of a transaction, so that others see the claim
  // at once. An empty key or scope, and a lease that is not positive, are refused (HX1001).
  // `on_lapse` is kept with the claim, and judges the owner before, too: if either of the two says
  // kUnknown, a lapse between them is an unknown outcome.
  [[nodiscard]] Result<Verdict> check_and_lock(const std::string& key, const std::string& owner,
                                               Duration lease = limits::kLeaseDefault,
                                               std::string_view content = {},
                                               OnLapse on_lapse = OnLapse::kTakeOver);
  // Renewed, or Fenced; HX1012 if the claim is settled.
  [[nodiscard]] Result<Verdict> renew(const std::string& key, Fence fence,
                                      Duration lease = limits::kLeaseDefault);

  // Done, or Fenced. In the transaction of the work's effect, so that both happen or neither does:
  // when it is Fenced, roll back.
  [[nodiscard]] Result<Verdict> mark_complete(const std::string& key, Fence fence,
                                              const std::string& outcome = {},
                                              Window retention = Window::forever());
  [[nodiscard]] Result<Verdict> mark_failed(const std::string& key, Fence fence,
                                            const std::string& reason);
  // It may have been done or not, as after a request that was sent and not answered.
  [[nodiscard]] Result<Verdict> mark_unknown(const std::string& key, Fence fence,
                                             const std::string& reason);
  // Gives up a claim in progress, as if the key had never been claimed; HX1012 if it is settled.
  [[nodiscard]] Result<Verdict> release(const std::string& key, Fence fence);

  // Acts of a person, which are kept in the table of audits: who, and why. `resolve` decides an
  // unknown outcome (HX1012: it is not unknown); `forget` removes a key in any state (HX1003: there
  // is none), and fences its holder.
  struct Act {
    std::string actor;
    std::string reason;
  };
  [[nodiscard]] Status resolve(const std::string& key, Resolution resolution, const Act& act,
                               const std::string& outcome = {},
                               Window retention = Window::forever());
  [[nodiscard]] Status forget(const std::string& key, const Act& act);

  [[nodiscard]] Result<bool> is_processed(const std::string& key);
  [[nodiscard]] Result<JobStatus> get_status(const std::string& key);

  // As Inbox::retain, for completed claims, from when they were settled on.
  [[nodiscard]] Result<std::optional<std::string>> retain(Window retention,
                                                          const std::string& behind = {},
                                                          std::uint32_t most = 1'000);

 private:
  Database& database_;
  std::string scope_;
};

}  // namespace hapax
