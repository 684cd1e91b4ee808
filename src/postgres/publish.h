// How an event is stored in a session that keeps statements prepared: the INSERT that publish() of
// migrations/postgres ends in, without the call, which is a third of its cost. It checks nothing.
#pragma once

#include <string>

namespace hapax::postgres {

// $1 type, $2 payload, $3 key, $4 id, $5 headers, $6 correlation id, $7 causation id. {} is the
// schema.
inline constexpr const char* kPublishStatement =
    "INSERT INTO {}.outbox (xid, lane, id, type, key, payload, headers, correlation_id, "
    "causation_id) VALUES ({}.outbox_xid($3), {}.outbox_lane($3, $4), $4, $1, $3, $2, $5, $6, $7)";

}  // namespace hapax::postgres
