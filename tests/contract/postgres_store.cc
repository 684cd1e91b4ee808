#include "postgres_store.h"

#include <hapax/postgres_store.h>

#include "../postgres/cluster.h"

namespace hapax::contract {

Result<std::unique_ptr<Store>> open_in_postgres(const std::filesystem::path& folder) {
  PostgresStoreOptions options;
  options.schema = folder.filename().string();
  options.segment_bytes = std::uint64_t{64} << 10;
  options.snapshot_every_bytes = std::uint64_t{32} << 10;
  options.log = [](const std::string&) {};
  return open_postgres(testing_postgres::Cluster::instance().uri("postgres"), options);
}

}  // namespace hapax::contract
