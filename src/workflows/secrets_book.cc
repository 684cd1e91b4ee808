#include "workflows/secrets_book.h"

namespace hapax::workflows {

// The store is asked without the lock: others go on with what is known.
void SecretBook::look() {
  base::MutexLock lock(mutex_);
  const std::int64_t now_ms = clock_.steady_ms();
  const bool fresh = looked_ms_ && now_ms - *looked_ms_ < kLookEvery.count();
  if (fresh) return;
  looked_ms_ = now_ms;
  lock.unlock();
  auto found = vault_.list(tenant_);
  lock.lock();
  if (!found) {
    if (!list_) looked_ms_.reset();  // Without any list the next one to ask asks again.
    return;
  }
  if (!list_ || list_->version != found->version) values_.clear();
  list_ = *std::move(found);
}

std::optional<Version> SecretBook::version() {
  look();
  const base::MutexLock lock(mutex_);
  return list_ ? std::optional(list_->version) : std::nullopt;
}

Result<std::string> SecretBook::value_of(std::string_view name) {
  look();
  base::MutexLock lock(mutex_);
  if (!list_) return Error{Errc::kUnavailable, "the store does not say which secrets there are"};
  if (!list_->has(name)) return no_such_secret(name);
  if (const auto known = values_.find(name); known != values_.end()) return known->second;
  const Version version = list_->version;
  lock.unlock();
  auto value = vault_.value_of(tenant_, name);
  lock.lock();
  if (value && list_->version == version) values_.insert_or_assign(std::string(name), *value);
  return value;
}

}  // namespace hapax::workflows
