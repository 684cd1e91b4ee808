#include "front/desk.h"

#include <utility>

namespace hapax::front {

namespace {

Status admit(const Caller& caller, wire::Request& request, const TenantNames& names) {
  const auto keep = [&](std::string_view bytes) { return request.keep(bytes); };
  for (Op& op : request.ops) {
    HAPAX_CHECK(check(caller, op));
    scope(op, names, keep);
  }
  if (caller.account != nullptr && !request.id.empty()) {
    HAPAX_CHECK(caller.account->check_window("id_window", request.id_window));
  }
  if (caller.account != nullptr && request.ops.size() > 1) {
    caller.account->charge_more(request.ops.size() - 1);
  }
  request.id = names.inside(request.id, keep);
  if (request.transaction) {
    request.transaction->name = names.inside(request.transaction->name, keep);
  }
  return Ok{};
}

Result<Answer> outside(Result<Answer> answer, const TenantNames& names) {
  if (names.plain()) return answer;
  if (answer) {
    for (Verdict& verdict : answer->verdicts) names.clean(verdict);
    return answer;
  }
  Error error = std::move(answer).error();
  names.clean(error.detail);
  return error;
}

}  // namespace

Status check(const Caller& caller, const Op& op) {
  HAPAX_CHECK(check_right(caller, right_of(op)));
  HAPAX_CHECK(check_names(op));
  if (caller.account == nullptr || !caller.account->limited()) return Ok{};
  return caller.account->check(op, std::chrono::steady_clock::now());
}

void Desk::commit(net::Loop& loop, const Caller& caller, wire::SharedRequest request, Then then) {
  const TenantNames names(caller);
  if (Status admitted = admit(caller, *request, names); !admitted) {
    loop.post([error = std::move(admitted).error(), then = std::move(then)] { then(error); });
    return;
  }
  const Commit commit = request->commit();
  store_.submit(commit, [this, &loop, names, request = std::move(request),
                         then = std::move(then)](Result<Answer> answer) {
    if (answer) ring(request->ops, *answer);
    auto shared = std::make_shared<Result<Answer>>(outside(std::move(answer), names));
    // The request goes on the loop, too: it may be large, and the store's thread has better to do.
    loop.post([request, shared, then] { then(std::move(*shared)); });
  });
}

void Desk::ring(std::span<const Op> ops, const Answer& answer) {
  for (std::size_t i = 0; i < ops.size() && i < answer.verdicts.size(); ++i) {
    const auto* append = std::get_if<Append>(&ops[i]);
    if (append != nullptr && std::holds_alternative<Appended>(answer.verdicts[i])) {
      bell_.ring(append->stream);
    }
  }
}

}  // namespace hapax::front
