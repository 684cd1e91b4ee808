// What is wrong with the tables of a shared store, and what to do. Changes nothing.
#pragma once

#include <string>

#include "postgres/checkup.h"

namespace hapax::shared_postgres {

void check_store(const std::string& schema, postgres::Connection& connection,
                 postgres::Findings& findings);

}  // namespace hapax::shared_postgres
