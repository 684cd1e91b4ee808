// A store in a PostgreSQL database that any number of processes share; they behave as one. Each
// holds the whole state in memory. See docs/guide/shared-store.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <hapax/store.h>

namespace hapax {

struct PostgresStoreOptions {
  std::string schema = "hapax_store";  // made if it is not there
  // Of remembered ids, claims, registers … Not set: half of what the machine has, or of what the
  // control group of this process may take, and at most 4 GiB. The log says so if it is less.
  std::optional<std::uint64_t> memory_max{};
  std::uint64_t snapshot_every_bytes = std::uint64_t{256} << 20;  // of log
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;  // when the store is made; it keeps that
  std::chrono::milliseconds patience{10'000};             // with a database that does not answer
  Duration clock_jump_max{std::chrono::hours{24}};  // a larger jump while running is not believed
  bool accept_clock_jump = false;  // a start sets log time to the wall clock, however far ahead
  std::function<void(const std::string&)> log{};  // one line per notable event; none = stderr
};

// `uri`: postgres://user@host/database, as libpq reads it.
[[nodiscard]] Result<std::unique_ptr<Store>> open_postgres(
    const std::string& uri, const PostgresStoreOptions& options = {});

}  // namespace hapax
