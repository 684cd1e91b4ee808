// Records as server-sent events, for as long as the client listens.
#pragma once

#include <string_view>

#include <hapax/ids.h>

#include "access/entry.h"
#include "rest/router.h"

namespace hapax::rest {

inline constexpr std::string_view kEventStream = "text/event-stream";

// From `from` on, or behind the Last-Event-ID that a client names when it comes back.
void stream_events(access::Entry& entry, const SharedCall& call, Sequence from);

}  // namespace hapax::rest
