#include "front/audit.h"

#include <variant>

#include "wire/json_text.h"
#include "wire/op_fields.h"

namespace hapax::front {

namespace {

// What it is about: "stream", "stream/consumer", "scope/key".
struct SubjectOf {
  std::string operator()(const RetireProducer& op) const { return both(op.stream, op.producer); }
  std::string operator()(const Resolve& op) const { return both(op.scope, op.key); }
  std::string operator()(const Forget& op) const { return both(op.scope, op.key); }
  std::string operator()(const CreateConsumer& op) const { return both(op.stream, op.consumer); }
  std::string operator()(const DeleteConsumer& op) const { return both(op.stream, op.consumer); }
  std::string operator()(const Seek& op) const { return both(op.stream, op.consumer); }
  std::string operator()(const Redrive& op) const {
    return both(op.dead_letters, std::to_string(op.sequence.value));
  }
  template <class Other>
  std::string operator()(const Other& op) const {
    if constexpr (requires { op.stream; }) return std::string(op.stream);
    return {};
  }

  static std::string both(std::string_view a, std::string_view b) {
    return std::string(a) + "/" + std::string(b);
  }
};

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

}  // namespace

bool is_audited(const Caller& caller, const Op& op) {
  return !caller.tenant.empty() && right_of(op) == Right::kAdmin;
}

std::string_view name_of(const Op& op) {
  return std::visit(
      [](const auto& one) {
        using Wanted = std::decay_t<decltype(one)>;
        std::string_view name;
        const auto look = [&]<class AnyOp>(const wire::Named<AnyOp>& named) {
          if constexpr (std::is_same_v<AnyOp, Wanted>) name = named.name;
        };
        std::apply([&](const auto&... named) { (look(named), ...); }, wire::kOps);
        return name;
      },
      op);
}

std::string audit_line(const Caller& caller, const Op& op) {
  wire::JsonObject line;
  line.add("act", name_of(op)).add("subject", std::visit(SubjectOf{}, op));
  line.add("actor", caller.subject);
  std::visit(
      [&](const auto& one) {
        if constexpr (requires { one.actor; }) {
          if (!one.actor.empty()) line.add("on_behalf_of", one.actor);
          if (!one.reason.empty()) line.add("reason", one.reason);
        }
      },
      op);
  return line.text();
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
          return check_right(caller, Right::kAdmin);
        }
        return Ok{};
      },
      op);
}

}  // namespace hapax::front
