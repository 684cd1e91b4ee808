// The shared store in a PostgreSQL server of the test program's own.
#pragma once

#include <filesystem>
#include <memory>

#include <hapax/store.h>

namespace hapax::contract {

// A schema of its own for each folder.
Result<std::unique_ptr<Store>> open_in_postgres(const std::filesystem::path& folder);

}  // namespace hapax::contract
