// The HTTP interface of the store under /api/v1.
#pragma once

#include "front/desk.h"
#include "http/router.h"

namespace hapax::http {

// Adds every route of the store. The OpenAPI document tells of all routes there are when it is
// asked for, also of those added later.
void add_store_routes(Router& router, front::Desk& desk);

// The parts of it.
void add_operation_routes(Router& router, front::Desk& desk);
void add_read_routes(Router& router, front::Desk& desk);
void add_record_routes(Router& router, front::Desk& desk);
void add_receive_route(Router& router, front::Desk& desk);
void add_dedup_routes(Router& router, front::Desk& desk);
void add_outbox_routes(Router& router, front::Desk& desk);

}  // namespace hapax::http
