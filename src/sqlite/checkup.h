// What is wrong with an SQLite file that an application keeps an outbox, an inbox or claims in, and
// what to do. Changes nothing.
#pragma once

#include <cstdint>
#include <string>

#include "tables/finding.h"

namespace hapax::sqlite {

struct CheckupOptions {
  std::string path;
  std::string prefix = "hapax_";
  std::int64_t patience_ms = 300'000;  // how long a record may wait
};

void check_file(const CheckupOptions& options, tables::Findings& findings);

}  // namespace hapax::sqlite
