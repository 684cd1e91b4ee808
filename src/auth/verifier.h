// From a credential to an identity. Immutable and shared by all threads;
// new keys are a new verifier.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

#include "auth/identity.h"
#include "auth/key.h"
#include "auth/settings.h"
#include "auth/tokens.h"
#include "base/mutex.h"

namespace hapax::auth {

using ReadFile = std::function<Result<std::string>(const std::string& path)>;

struct Authentication {
  Result<Identity> identity;  // kUnauthenticated or kForbidden, in words for the client
  Time until = Time::max();   // wall time from which on the caller must be asked again
  std::string reason;         // of a refusal, for the log: more exact, without secrets
};

class Verifier {
 public:
  // Reads every file. kInvalidArgument, or what reading said; the text names the file.
  static Result<std::shared_ptr<const Verifier>> build(const VerifierSettings& settings,
                                                       const ReadFile& read);

  // `credential` is what stood behind "Bearer " or in AUTH; `now` is wall time.
  [[nodiscard]] Authentication authenticate(std::string_view credential, Time now) const;

  [[nodiscard]] std::size_t keys() const { return keys_.size(); }
  [[nodiscard]] std::size_t tokens() const { return tokens_.size(); }

 private:
  Verifier(VerifierSettings settings, std::vector<Key> keys, Tokens tokens)
      : settings_(std::move(settings)), keys_(std::move(keys)), tokens_(std::move(tokens)) {}

  VerifierSettings settings_;
  std::vector<Key> keys_;
  Tokens tokens_;
};

// The verifier of this moment. Who holds one keeps it while the next is on duty already.
class CurrentVerifier {
 public:
  explicit CurrentVerifier(std::shared_ptr<const Verifier> first) : verifier_(std::move(first)) {}

  [[nodiscard]] std::shared_ptr<const Verifier> verifier() const;
  // A4: A reload that fails changes nothing: the old verifier stays.
  [[nodiscard]] Status reload(const VerifierSettings& settings, const ReadFile& read);

 private:
  mutable base::Mutex mutex_;
  std::shared_ptr<const Verifier> verifier_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::auth
