// Who calls: the tenant and the rights that a credential gives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <hapax/verdicts.h>

#include "access/account.h"
#include "auth/identity.h"

namespace hapax::access {

using auth::Right;
using auth::Rights;

// Whoever calls a server without authentication.
inline constexpr std::string_view kAnybody = "anybody";

struct Caller : auth::Identity {
  std::shared_ptr<Account> account{};  // of the tenant; none: without limits

  [[nodiscard]] bool signed_in() const { return !subject.empty() && subject != kAnybody; }
};

// What holds where its requests say nothing.
[[nodiscard]] inline wire::Usual usual_of(const Caller& caller) {
  return caller.account == nullptr ? wire::Usual{} : caller.account->usual();
}

// A6: Who lacks the right to read bodies is told that there is a stored result, and no more.
void hide_result(Verdict& verdict);

}  // namespace hapax::access
