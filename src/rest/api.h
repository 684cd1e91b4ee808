// The HTTP interface of the store under /api/v1.
#pragma once

#include <string>

#include "access/entry.h"
#include "rest/outbox_directory.h"
#include "rest/record_directory.h"
#include "rest/router.h"
#include "rest/secret_directory.h"
#include "rest/workflow_changes.h"
#include "rest/workflow_directory.h"
#include "wire/json_schema.h"

namespace hapax::rest {

// Adds every route of the store. The OpenAPI document tells of all routes there are when it is
// asked for, also of those added later.
// `outbox` is the stream that the endpoints of the outbox tell of,
// and `databases` those beside it that they know.
void add_store_routes(Router& router, access::Entry& entry, const std::string& outbox,
                      wire::Callers callers, const OutboxDirectory& databases = {});
// Those of workflows, where there are any. The directory outlives the routes.
void add_workflow_routes(Router& router, access::Entry& entry, const WorkflowDirectory& directory);
void add_blocked_routes(Router& router, access::Entry& entry, const WorkflowDirectory& directory);
// Those of their records. The directory outlives the routes.
void add_undelivered_route(Router& router, access::Entry& entry, const RecordDirectory& directory);
void add_dead_routes(Router& router, access::Entry& entry, const RecordDirectory& directory);
void add_replay_route(Router& router, access::Entry& entry, const RecordDirectory& directory);
// Those that change workflows. What changes them outlives the routes.
void add_workflow_change_routes(Router& router, access::Entry& entry, WorkflowChanges& changes);
// Those of stored secrets. The directory outlives the routes.
void add_secret_routes(Router& router, access::Entry& entry, SecretDirectory& directory);

// The parts of it.
void add_operation_routes(Router& router, access::Entry& entry);
void add_read_routes(Router& router, access::Entry& entry);
void add_record_routes(Router& router, access::Entry& entry);
void add_receive_route(Router& router, access::Entry& entry);
void add_dedup_routes(Router& router, access::Entry& entry);
void add_outbox_routes(Router& router, access::Entry& entry, const std::string& table,
                       const OutboxDirectory& databases);

}  // namespace hapax::rest
