#include "access/admission.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "access/tenant_names.h"

namespace hapax::access {

namespace {

struct RightOf {
  Right operator()(const Receive&) const { return Right::kConsume; }
  Right operator()(const Ack&) const { return Right::kConsume; }
  Right operator()(const Nack&) const { return Right::kConsume; }
  Right operator()(const Extend&) const { return Right::kConsume; }
  Right operator()(const Get&) const { return Right::kConsume; }
  Right operator()(const Unset&) const { return Right::kProduce; }
  Right operator()(const Expire&) const { return Right::kProduce; }
  Right operator()(const Add&) const { return Right::kProduce; }
  Right operator()(const OpenProducer&) const { return Right::kProduce; }
  Right operator()(const Append&) const { return Right::kProduce; }
  Right operator()(const Claim&) const { return Right::kProduce; }
  Right operator()(const Renew&) const { return Right::kProduce; }
  Right operator()(const Settle&) const { return Right::kProduce; }
  Right operator()(const Advance&) const { return Right::kProduce; }
  Right operator()(const Set&) const { return Right::kProduce; }
  Right operator()(const Begin&) const { return Right::kProduce; }
  Right operator()(const End&) const { return Right::kProduce; }
  template <class Other>
  Right operator()(const Other&) const {
    return Right::kAdmin;
  }
};

Status check_names(const Op& op) {
  return all_from_outside(op) ? Status(Ok{}) : bad_name("a name");
}

// What may be done with a stream of the server's own: read it, and say how long it is kept.
template <class AnyOp>
constexpr bool kLeavesRecords =
    std::is_same_v<AnyOp, Receive> || std::is_same_v<AnyOp, Ack> || std::is_same_v<AnyOp, Nack> ||
    std::is_same_v<AnyOp, Extend> || std::is_same_v<AnyOp, Seek> ||
    std::is_same_v<AnyOp, CreateConsumer> || std::is_same_v<AnyOp, DeleteConsumer> ||
    std::is_same_v<AnyOp, ConfigureStream> || std::is_same_v<AnyOp, Trim>;

Status reserved(std::string_view name) {
  return Error{Errc::kInvalidArgument, "stream '" + std::string(name) +
                                           "' begins with $, which is reserved; it is read by "
                                           "administrators and written by the server"};
}

Status check_reserved(const Caller& caller, const Op& op) {
  return std::visit(
      [&](const auto& one) -> Status {
        using AnyOp = std::decay_t<decltype(one)>;
        if constexpr (requires { one.settings.dead_letters; }) {
          if (one.settings.dead_letters.starts_with('$'))
            return reserved(one.settings.dead_letters);
        }
        if constexpr (requires { one.stream; }) {
          if (!one.stream.starts_with('$')) return Ok{};
          // A8: written by the server and read by administrators only.
          if (!kLeavesRecords<AnyOp>) return reserved(one.stream);
          return check_stream(caller, one.stream);
        }
        return Ok{};
      },
      op);
}

}  // namespace

std::optional<NotNow> let_in(const Caller& caller, std::shared_ptr<ConnectionPermit>& permit) {
  if (caller.account == nullptr) return std::nullopt;
  if (Status permitted = hold_permit(permit, caller.account); !permitted) {
    return NotNow{std::move(permitted).error()};
  }
  const std::optional<Duration> wait = caller.account->charge();
  if (!wait) return std::nullopt;
  return NotNow{rate_error(*wait), wait};
}

Status check_right(const Caller& caller, Right right) {
  if (caller.rights.has(right)) return Ok{};
  return Error{Errc::kForbidden,
               "'" + caller.subject + "' has no right to " + std::string(word_of(right)) +
                   "; ask for a credential with the role '" + std::string(word_of(right)) + "'"};
}

Right right_of(const Op& op) { return std::visit(RightOf{}, op); }

Status check_any_right(const Caller& caller, std::span<const Right> any_of) {
  const auto has = [&](Right right) { return caller.rights.has(right); };
  if (std::any_of(any_of.begin(), any_of.end(), has)) return Ok{};
  return check_right(caller, any_of.front());
}

Status check_stream(const Caller& caller, std::string_view stream) {
  return stream.starts_with('$') ? check_right(caller, Right::kAdmin) : Status(Ok{});
}

Status check(const Caller& caller, const Op& op) {
  HAPAX_CHECK(check_right(caller, right_of(op)));
  HAPAX_CHECK(check_names(op));
  HAPAX_CHECK(check_reserved(caller, op));
  return caller.account == nullptr ? Status(Ok{}) : caller.account->check(op);
}

Status check_terms(const Caller& caller, wire::Request& request) {
  if (request.id && !from_outside(*request.id)) return bad_name("the commit's id");
  if (request.transaction && !from_outside(request.transaction->name)) {
    return bad_name("the transaction's name");
  }
  if (caller.account == nullptr || !request.id) return Ok{};
  HAPAX_TRY(request.id_window, caller.account->id_window(request.id_window));
  return Ok{};
}

void charge_rest(const Caller& caller, std::size_t ops, std::size_t let_in) {
  if (caller.account != nullptr && ops > let_in) caller.account->charge_more(ops - let_in);
}

Status admit(const Caller& caller, wire::Request& request, std::size_t let_in) {
  const auto keep = [&](std::string_view bytes) { return request.keep(bytes); };
  HAPAX_CHECK(check_terms(caller, request));
  for (Op& op : request.ops) {
    HAPAX_CHECK(check(caller, op));
    sign(op, caller, keep);
  }
  charge_rest(caller, request.ops.size(), let_in);
  return Ok{};
}

}  // namespace hapax::access
