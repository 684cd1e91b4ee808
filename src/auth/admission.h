// What a credential gives.
#pragma once

#include <hapax/time.h>

#include "front/caller.h"

namespace hapax::auth {

// Who calls, and until when that holds. Whoever keeps a caller longer than a request (a session)
// must ask again then.
struct Admission {
  front::Caller caller;
  Time until = Time::max();
};

}  // namespace hapax::auth
