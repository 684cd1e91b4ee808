// The API described by itself: OpenAPI 3.1 from the routes, the fields of the operations and what
// the writers of answers write.
#pragma once

#include <string>

#include "rest/router.h"
#include "wire/json_schema.h"

namespace hapax::rest {

[[nodiscard]] std::string openapi_document(const Router& router, wire::Callers callers);

// /openapi.json, and a page at / for people.
void add_description_routes(Router& router, wire::Callers callers);

}  // namespace hapax::rest
