#include "resp/op_arguments.h"

#include <string>

#include "resp/argument_fields.h"

namespace hapax::resp {

Result<Op> read_op(std::string_view name, std::span<const std::string_view> arguments,
                   std::deque<std::vector<Header>>& headers) {
  Result<Op> result =
      Error{Errc::kInvalidArgument, "there is no operation '" + std::string(name) + "'"};
  wire::with_op(name, [&]<class AnyOp>(const wire::Named<AnyOp>&) {
    AnyOp op{};
    ArgumentFields reader(arguments, headers);
    wire::fields(reader, op);
    const Status read = reader.finish();
    result = read ? Result<Op>(Op(op)) : Result<Op>(read.error());
  });
  return result;
}

std::string usage_of(std::string_view name) {
  Usage usage;
  wire::with_op(name, [&]<class AnyOp>(const wire::Named<AnyOp>&) {
    AnyOp op{};
    wire::fields(usage, op);
  });
  return usage.text;
}

}  // namespace hapax::resp
