// The HTTP interface of the store under /api/v1.
#pragma once

#include "front/desk.h"
#include "http/router.h"

namespace hapax::http {

// Adds every route of the store.
void add_store_routes(Router& router, front::Desk& desk);

}  // namespace hapax::http
