// What is made of stored secrets, and made again when one of them has changed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <hapax/result.h>

#include "base/mutex.h"
#include "workflows/secrets.h"

namespace hapax::workflows {

// From any thread. A `Made` that was replaced is told to let_go().
template <class Made>
class MadeOfSecrets {
 public:
  using Make = std::function<Result<std::shared_ptr<const Made>>()>;

  // Without a book it is made once.
  MadeOfSecrets(Make make, SecretBook* book) : make_(std::move(make)), book_(book) {}

  // As it is, or as it has just been made again. An error says what is missing: whoever asks later
  // may get it. May wait for the store, about once a second.
  [[nodiscard]] Result<std::shared_ptr<const Made>> get() {
    const std::optional<Version> version = book_ == nullptr ? std::nullopt : book_->version();
    base::MutexLock lock(mutex_);
    // While the store does not answer, what was known stays in use.
    const bool current = made_ && (version == made_of_ || !version);
    if (current) return made_;
    lock.unlock();
    auto made = make_();
    lock.lock();
    const std::shared_ptr<const Made> old = std::move(made_);
    made_ = made ? *made : nullptr;
    made_of_ = version;
    lock.unlock();
    if (old) old->let_go();
    return made;
  }

  // As it was made last; null: it was not.
  [[nodiscard]] std::shared_ptr<const Made> last() {
    const base::MutexLock lock(mutex_);
    return made_;
  }

 private:
  const Make make_;
  SecretBook* const book_;
  base::Mutex mutex_;
  std::shared_ptr<const Made> made_ HAPAX_GUARDED_BY(mutex_);
  std::optional<Version> made_of_ HAPAX_GUARDED_BY(mutex_);  // of the secrets
};

}  // namespace hapax::workflows
