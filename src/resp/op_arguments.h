// Operations read from the arguments of a command:
//
//   HX.APPEND stream payload [ID id] [GROUP group] [HEADERS count name value …] …
//
// Required fields stand in their order, all others as a name (in any case) and a value.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/ops.h>
#include <hapax/result.h>

#include "wire/usual.h"

namespace hapax::resp {

// Reads an operation of one kind. `headers` is where its header list lives; the views of the
// operation refer to the arguments.
using ReadOp = Status (*)(std::span<const std::string_view> arguments,
                          std::deque<std::vector<Header>>& headers, const wire::Usual& usual,
                          Op& op);

struct OpSyntax {
  std::string name;   // "HX.APPEND"
  std::string usage;  // "stream payload [ID value] …"
  std::string summary;
  int required = 0;  // how many arguments it has at least
  ReadOp read = nullptr;
};
[[nodiscard]] std::span<const OpSyntax> op_syntaxes();

}  // namespace hapax::resp
