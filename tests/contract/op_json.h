// Operations as JSON, the other way round: from the lists of fields that the server reads them
// with.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <hapax/store.h>

namespace hapax::contract {

struct OpCall {
  std::string method;
  std::string target;
  std::string body;
};
// The operation by its own route; nothing if it has none, or if a name cannot stand in
// a path: it is empty or has a zero byte.
[[nodiscard]] std::optional<OpCall> call_of(const Op& op);

// All bytes percent-encoded.
[[nodiscard]] std::string escaped(std::string_view bytes);

// {"ops": […], "mode": …} as POST /commit takes it.
[[nodiscard]] std::string json_of(const Commit& commit);

}  // namespace hapax::contract
