// The streams that a configuration names, made before the first client comes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include <hapax/result.h>
#include <hapax/store.h>

#include "config/config.h"

namespace hapax::serve {

// A stream that is there with other settings gets those of the configuration; a change that would
// forget something is refused, as it is for everybody.
[[nodiscard]] Status make_streams(Store& store, std::span<const config::Stream> streams);

// How many bytes the records of each tenant's streams have.
[[nodiscard]] Result<std::unordered_map<std::string, std::uint64_t>> bytes_by_tenant(Store& store);

}  // namespace hapax::serve
