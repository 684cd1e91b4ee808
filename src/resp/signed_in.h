// Who a connection speaks for: nobody (a stranger), anybody, or whoever its credential names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <hapax/result.h>

#include "access/admission.h"
#include "access/authenticator.h"
#include "access/caller.h"
#include "base/assert.h"

namespace hapax::resp {

class SignedIn {
 public:
  // As sign_out() has it.
  SignedIn(access::Authenticator& authenticator, std::string peer);

  // Whoever it was before stays if the credential is refused.
  Status sign_in(std::string_view credential);
  // Whoever calls without a credential.
  void sign_out();

  // A5: what was admitted once is asked again when it is over or keys have changed.
  [[nodiscard]] bool holds() const { return !admission_ || authenticator_.holds(*admission_); }
  enum class Became : std::uint8_t {
    kSame,
    kOther,   // other rights, or another tenant
    kNobody,  // the credential is good no more: signed out
  };
  // REQUIRES: !holds().
  Became sign_in_again();

  [[nodiscard]] bool stranger() const { return !caller_; }
  // REQUIRES: !stranger(), for both.
  [[nodiscard]] const access::Caller& caller() const {
    HAPAX_ASSERT(caller_.has_value(), "a stranger is nobody who could ask");
    return *caller_;
  }
  [[nodiscard]] std::optional<access::NotNow> let_in() { return access::let_in(caller(), permit_); }
  // What names mean to the caller.
  [[nodiscard]] const access::TenantNames& names() const { return names_; }

  // The tenant has a connection less.
  void hang_up() { permit_.reset(); }

 private:
  void become(std::optional<access::Caller> caller);

  access::Authenticator& authenticator_;
  const std::string peer_;  // as the authenticator knows it
  std::optional<access::Caller> caller_;
  access::TenantNames names_;                   // of the caller
  std::optional<access::Admission> admission_;  // none: signed in with nothing
  std::string credential_;                      // that the admission was for
  std::shared_ptr<access::ConnectionPermit> permit_;
};

}  // namespace hapax::resp
