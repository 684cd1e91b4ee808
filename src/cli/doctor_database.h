// `hapax doctor DB`: an application's database, or the one of a shared store.
#pragma once

#include <string>

#include "cli/commands.h"

namespace hapax::cli {

struct DatabaseDoctorOptions {
  std::string database;  // postgres://… or sqlite:FILE
  std::string schema;    // empty: hapax, and that there may be none beside a shared store
  std::string store_schema = "hapax_store";
  std::string prefix = "hapax_";
  std::string patience = "5m";
  Output output = Output::kText;
};

// 0: all is well, 1: warnings, 2: something is critical; 64: wrong arguments.
[[nodiscard]] int run_database_doctor(const DatabaseDoctorOptions& options);

}  // namespace hapax::cli
