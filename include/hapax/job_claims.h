// The right to do the work behind a key, for one worker at a time, in the application's database. A
// claim is never lost with its worker: when the lease has run out, another one may take it over,
// and the late worker is refused by its fence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <hapax/database.h>
#include <hapax/limits.h>
#include <hapax/time.h>
#include <hapax/verdicts.h>

namespace hapax {

enum class JobStatus : std::uint8_t { kNotSeen, kProcessing, kCompleted, kFailed };
[[nodiscard]] std::string_view word_of(JobStatus status);  // not_seen, processing …

class JobClaims {
 public:
  JobClaims(Database& database, std::string scope)
      : database_(database), scope_(std::move(scope)) {}

  // Claimed: work, and settle with its fence. DuplicateClaim: completed before, with this outcome.
  // InProgress: another worker holds it. Conflict: the key is known with other content. Outside of
  // a transaction, so that others see the claim at once.
  [[nodiscard]] Result<Verdict> check_and_lock(const std::string& key, const std::string& owner,
                                               Duration lease = limits::kLeaseDefault,
                                               std::string_view content = {});
  [[nodiscard]] Result<Verdict> renew(const std::string& key, Fence fence,
                                      Duration lease = limits::kLeaseDefault);

  // Done, or Fenced. In the transaction of the work's effect, so that both happen or neither does:
  // when it is Fenced, roll back.
  [[nodiscard]] Result<Verdict> mark_complete(const std::string& key, Fence fence,
                                              const std::string& outcome = {},
                                              Window retention = Window::forever());
  [[nodiscard]] Result<Verdict> mark_failed(const std::string& key, Fence fence,
                                            const std::string& reason);

  [[nodiscard]] Result<bool> is_processed(const std::string& key);
  [[nodiscard]] Result<JobStatus> get_status(const std::string& key);

 private:
  Database& database_;
  std::string scope_;
};

}  // namespace hapax
