// The streams that a configuration names, made before the first client comes.
#pragma once

#include <span>

#include <hapax/result.h>
#include <hapax/store.h>

#include "config/config.h"

namespace hapax::serve {

// A stream that is there with other settings gets those of the configuration; a change that would
// forget something is refused, as it is for everybody.
[[nodiscard]] Status make_streams(Store& store, std::span<const config::Stream> streams);

}  // namespace hapax::serve
