// The one admission, for every door: who calls (authenticator.h); whether its tenant may have one
// more connection and one more operation now (let_in); and of each operation, whether the caller
// has the right to it, reaches into no other tenant, and asks for no more than its tenant may
// (admit).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <hapax/ops.h>
#include <hapax/result.h>

#include "access/caller.h"
#include "wire/request.h"

namespace hapax::access {

struct NotNow {
  Error error;
  std::optional<Duration> wait{};  // none: nobody knows how long
};
// One operation more, on a connection that keeps `permit`. Nothing: it may come in, and is charged.
[[nodiscard]] std::optional<NotNow> let_in(const Caller& caller,
                                           std::shared_ptr<ConnectionPermit>& permit);

[[nodiscard]] Right right_of(const Op& op);
[[nodiscard]] Status check_right(const Caller& caller, Right right);
// Whether the caller has one of them; otherwise the first is what it lacks. REQUIRES: there is one.
[[nodiscard]] Status check_any_right(const Caller& caller, std::span<const Right> any_of);
// A8: streams of the server's own are for administrators.
[[nodiscard]] Status check_stream(const Caller& caller, std::string_view stream);
// Everything a caller may not ask for, before the store sees it.
[[nodiscard]] Status check(const Caller& caller, const Op& op);
// Of a commit's own: its id and how long that is remembered, and its transaction.
[[nodiscard]] Status check_terms(const Caller& caller, wire::Request& request);

// What came in is so many operations; `let_in` of them were charged when they came.
void charge_rest(const Caller& caller, std::size_t ops, std::size_t let_in);
// A whole commit. `let_in` of its operations were charged when they came in, the others are now.
[[nodiscard]] Status admit(const Caller& caller, wire::Request& request, std::size_t let_in = 1);

// An act of a person whose actor is left out is the caller's, if we know who calls.
template <class Keep>
void sign(Op& op, const Caller& caller, const Keep& keep) {
  if (!caller.signed_in()) return;
  std::visit(
      [&](auto& one) {
        if constexpr (requires { one.actor; }) {
          if (one.actor.empty()) one.actor = keep(caller.subject);
        }
      },
      op);
}

}  // namespace hapax::access
