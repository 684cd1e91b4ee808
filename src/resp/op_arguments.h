// Operations read from the arguments of a command:
//
//   HX.APPEND stream payload [ID id] [GROUP group] [HEADERS count name value …] …
//
// Required fields stand in their order, all others as a name (in any case) and a value.
#pragma once

#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include <hapax/ops.h>
#include <hapax/result.h>

namespace hapax::resp {

// The operation `name` ("append"). `headers` is where its header list lives; the views of the
// operation refer to the arguments.
[[nodiscard]] Result<Op> read_op(std::string_view name, std::span<const std::string_view> arguments,
                                 std::deque<std::vector<Header>>& headers);

// "stream payload [ID id] …", for help.
[[nodiscard]] std::string usage_of(std::string_view name);

}  // namespace hapax::resp
