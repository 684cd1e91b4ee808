// Schemas of what is told of records of workflows, for the OpenAPI document.
#pragma once

#include "wire/json_text.h"

namespace hapax::rest {

void add_record_schemas(wire::JsonObject& out);

}  // namespace hapax::rest
