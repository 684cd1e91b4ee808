#include "access/audit.h"

#include <variant>

#include "access/admission.h"
#include "wire/json_text.h"
#include "wire/op_fields.h"

namespace hapax::access {

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

}  // namespace hapax::access
