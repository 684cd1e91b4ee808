// Operations as commands of RESP: HX.APPEND stream payload ID id …
#pragma once

#include <string>
#include <vector>

#include <hapax/store.h>

namespace hapax::contract {

using Words = std::vector<std::string>;

[[nodiscard]] Words command_of(const Op& op);
// HX.COMMIT with everything about the commit but its operations.
[[nodiscard]] Words commit_command(const Commit& commit);

}  // namespace hapax::contract
