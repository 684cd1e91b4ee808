// How long a server asks its callers to wait.
#pragma once

#include <hapax/time.h>

#include "http/message.h"

namespace hapax::client {

// An endpoint that asks for more is asked again after this: a mistake there must not stop a relay
// for days.
inline constexpr Duration kRetryAfterMax{3'600'000};

// RFC 9110, 10.2.3: Retry-After in seconds, or as a date, which is compared with the answer's own
// Date because the two clocks may differ. 0: it does not ask, or not in a way that can be read.
[[nodiscard]] Duration retry_after(const http::Fields& fields);

}  // namespace hapax::client
