// Operations as JSON, the other way round: from the lists of fields that the server reads them
// with.
#pragma once

#include <string>

#include <hapax/store.h>

namespace hapax::contract {

// {"ops": […], "mode": …} as POST /commit takes it.
[[nodiscard]] std::string json_of(const Commit& commit);

}  // namespace hapax::contract
