#include <hapax/job_claims.h>

#include "database/tables.h"

namespace hapax {

std::string_view word_of(JobStatus status) {
  switch (status) {
    case JobStatus::kNotSeen:
      return "not_seen";
    case JobStatus::kProcessing:
      return "processing";
    case JobStatus::kCompleted:
      return "completed";
    case JobStatus::kFailed:
      return "failed";
  }
  return "";
}

Result<Verdict> JobClaims::check_and_lock(const std::string& key, const std::string& owner,
                                          Duration lease, std::string_view content) {
  const std::string fingerprint =
      content.empty() ? std::string{} : database::fingerprint_of(content);
  return database_.tables_->claim({scope_, key}, {owner, lease, fingerprint});
}

Result<Verdict> JobClaims::renew(const std::string& key, Fence fence, Duration lease) {
  return database_.tables_->renew({scope_, key}, fence, lease);
}

Result<Verdict> JobClaims::mark_complete(const std::string& key, Fence fence,
                                         const std::string& outcome, Window retention) {
  return database_.tables_->settle({scope_, key}, fence,
                                   {JobStatus::kCompleted, outcome, {}, retention});
}

Result<Verdict> JobClaims::mark_failed(const std::string& key, Fence fence,
                                       const std::string& reason) {
  return database_.tables_->settle({scope_, key}, fence,
                                   {JobStatus::kFailed, {}, reason, Window{std::chrono::days{30}}});
}

Result<bool> JobClaims::is_processed(const std::string& key) {
  HAPAX_TRY(const JobStatus status, get_status(key));
  return status == JobStatus::kCompleted;
}

Result<JobStatus> JobClaims::get_status(const std::string& key) {
  return database_.tables_->status({scope_, key});
}

}  // namespace hapax
