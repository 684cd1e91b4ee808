// How whoever runs an engine ends it in order.
#pragma once

#include <functional>

#include <hapax/result.h>
#include <hapax/time.h>

#include "delivery/engine.h"
#include "ports/clock.h"

namespace hapax::delivery {

// Z9: what is under way is waited for, so that its outcome is known and settled; no longer than
// `patience`, because whoever stops this process waits, too. The rest is given back. `rest` waits
// for so long at most.
[[nodiscard]] Status end_engine(Engine& engine, ports::Clock& clock, Duration patience,
                                const std::function<void(Duration)>& rest);

}  // namespace hapax::delivery
