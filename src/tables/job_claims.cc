#include <hapax/job_claims.h>

#include "base/format.h"
#include "tables/tables.h"

namespace hapax {

namespace {

using tables::check_filled;
using tables::ClaimKey;

Status check(ClaimKey key) {
  HAPAX_CHECK(check_filled("the scope of a claim", key.scope));
  return check_filled("the key of a claim", key.key);
}

// The databases answer a holder that its own fence stands in its way if the claim is settled.
Result<Verdict> unless_settled(Result<Verdict> verdict, ClaimKey key, Fence fence,
                               std::string_view what) {
  const auto* fenced = verdict ? std::get_if<Fenced>(&*verdict) : nullptr;
  if (fenced == nullptr || fenced->current != fence.value) return verdict;
  return Error{
      Errc::kPreconditionFailed,
      base::format("claim '{}/{}' is settled with fence {}; only a claim in progress can be {}",
                   key.scope, key.key, fence.value, what)};
}

}  // namespace

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
    case JobStatus::kUnknown:
      return "unknown";
  }
  return "";
}

Result<Verdict> JobClaims::check_and_lock(const std::string& key, const std::string& owner,
                                          Duration lease, std::string_view content,
                                          OnLapse on_lapse) {
  HAPAX_CHECK(check({scope_, key}));
  HAPAX_CHECK(tables::check_lease(lease));
  const std::string fingerprint = content.empty() ? std::string{} : tables::fingerprint_of(content);
  return database_.tables_->claim({scope_, key}, {owner, lease, fingerprint, on_lapse});
}

Result<Verdict> JobClaims::renew(const std::string& key, Fence fence, Duration lease) {
  HAPAX_CHECK(check({scope_, key}));
  HAPAX_CHECK(tables::check_lease(lease));
  return unless_settled(database_.tables_->renew({scope_, key}, fence, lease), {scope_, key}, fence,
                        "renewed");
}

Result<Verdict> JobClaims::mark_complete(const std::string& key, Fence fence,
                                         const std::string& outcome, Window retention) {
  HAPAX_CHECK(check({scope_, key}));
  return database_.tables_->settle({scope_, key}, fence,
                                   {JobStatus::kCompleted, outcome, {}, retention});
}

Result<Verdict> JobClaims::mark_failed(const std::string& key, Fence fence,
                                       const std::string& reason) {
  HAPAX_CHECK(check({scope_, key}));
  return database_.tables_->settle({scope_, key}, fence,
                                   {JobStatus::kFailed, {}, reason, tables::kFailedRetention});
}

Result<Verdict> JobClaims::mark_unknown(const std::string& key, Fence fence,
                                        const std::string& reason) {
  HAPAX_CHECK(check({scope_, key}));
  return database_.tables_->settle({scope_, key}, fence, {JobStatus::kUnknown, {}, reason});
}

Result<Verdict> JobClaims::release(const std::string& key, Fence fence) {
  HAPAX_CHECK(check({scope_, key}));
  return unless_settled(database_.tables_->drop({scope_, key}, fence), {scope_, key}, fence,
                        "released; settle it as completed or failed, or resolve it");
}

Status JobClaims::resolve(const std::string& key, Resolution resolution, const Act& act,
                          const std::string& outcome, Window retention) {
  HAPAX_CHECK(check({scope_, key}));
  return database_.tables_->resolve({scope_, key},
                                    {resolution, act.actor, act.reason, outcome, retention});
}

Status JobClaims::forget(const std::string& key, const Act& act) {
  HAPAX_CHECK(check({scope_, key}));
  return database_.tables_->forget({scope_, key}, act.actor, act.reason);
}

Result<bool> JobClaims::is_processed(const std::string& key) {
  HAPAX_TRY(const JobStatus status, get_status(key));
  return status == JobStatus::kCompleted;
}

Result<JobStatus> JobClaims::get_status(const std::string& key) {
  return database_.tables_->status({scope_, key});
}

Result<std::optional<std::string>> JobClaims::retain(Window retention, const std::string& behind,
                                                     std::uint32_t most) {
  HAPAX_CHECK(check_filled("the scope of claims", scope_));
  return database_.tables_->retain({tables::Retained::kClaims, scope_}, retention, behind, most);
}

}  // namespace hapax
