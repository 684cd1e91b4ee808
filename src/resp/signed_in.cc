#include "resp/signed_in.h"

#include "base/assert.h"

namespace hapax::resp {

SignedIn::SignedIn(access::Authenticator& authenticator, std::string peer)
    : authenticator_(authenticator), peer_(std::move(peer)) {
  sign_out();
}

Status SignedIn::sign_in(std::string_view credential) {
  HAPAX_TRY(access::Admission admission, authenticator_.authenticate(credential, peer_));
  become(admission.caller);
  admission_ = std::move(admission);
  credential_ = credential;
  return Ok{};
}

void SignedIn::sign_out() { become(authenticator_.anybody()); }

void SignedIn::become(std::optional<access::Caller> caller) {
  caller_ = std::move(caller);
  names_ = caller_ ? access::TenantNames(*caller_) : access::TenantNames();
  admission_.reset();
  credential_.clear();
}

SignedIn::Became SignedIn::sign_in_again() {
  HAPAX_ASSERT(admission_.has_value(), "only an admission ends");
  const std::string credential = credential_;
  const access::Caller before = *caller_;
  if (!sign_in(credential)) {
    sign_out();
    return Became::kNobody;
  }
  const bool same = caller_->tenant == before.tenant && caller_->rights == before.rights;
  return same ? Became::kSame : Became::kOther;
}

}  // namespace hapax::resp
