#include "resp/op_arguments.h"

#include <array>
#include <string>
#include <tuple>

#include "resp/argument_fields.h"

namespace hapax::resp {

namespace {

template <class AnyOp>
Status read_op(std::span<const std::string_view> arguments,
               std::deque<std::vector<Header>>& headers, const wire::Usual& usual, Op& op) {
  AnyOp& made = op.emplace<AnyOp>();
  usual.put(made);
  Status read = read_fields(arguments, headers, made);
  usual.finish(made);
  return read;
}

template <class AnyOp>
OpSyntax command_of(const wire::Named<AnyOp>& named) {
  const std::string name(named.name);
  return {"HX." + base::upper(name), std::string(usage_of<AnyOp>()), "The operation " + name,
          required_of<AnyOp>(), read_op<AnyOp>};
}

}  // namespace

std::span<const OpSyntax> op_syntaxes() {
  static const auto kCommands =
      std::apply([](const auto&... named) { return std::array{command_of(named)...}; }, wire::kOps);
  return kCommands;
}

}  // namespace hapax::resp
