// Where the shared store meets PostgreSQL.
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <hapax/postgres_store.h>

#include "base/format.h"
#include "base/mutex.h"
#include "host/entropy.h"
#include "host/memory.h"
#include "journal/format.h"
#include "journal/moving.h"
#include "postgres/connection.h"
#include "shared/shared_store.h"
#include "shared_postgres/folder.h"
#include "shared_postgres/log.h"

namespace hapax {

namespace {

struct DatabasePorts {
  explicit DatabasePorts(const shared_postgres::StorePlace& place)
      : log(place, clock, recent), folder(place, recent) {}

  shared_postgres::DatabaseClock clock;
  shared_postgres::RecentBatches recent;
  shared_postgres::PostgresLog log;
  shared_postgres::PostgresFolder folder;
  host::HostEntropy entropy;
};

// Every new connection may warn of the same.
postgres::Notice once_each(std::function<void(const std::string&)> log) {
  struct Told {
    base::Mutex mutex;
    std::set<std::string> lines HAPAX_GUARDED_BY(mutex);
  };
  return [told = std::make_shared<Told>(), log = std::move(log)](const std::string& line) {
    constexpr std::size_t kLinesMax = 100;
    const base::MutexLock lock(told->mutex);
    if (told->lines.size() < kLinesMax && told->lines.insert(line).second) log(line);
  };
}

void log_to_stderr(const std::string& line) { std::fprintf(stderr, "hapax: %s\n", line.c_str()); }

shared::SharedOptions to_shared(const PostgresStoreOptions& options, std::uint32_t segment_bytes,
                                std::uint64_t memory_max) {
  shared::SharedOptions to;
  to.engine.memory_max = memory_max;
  to.engine.segment_bytes = segment_bytes;
  to.engine.snapshot_every_bytes = options.snapshot_every_bytes;
  to.engine.clock_jump_max = options.clock_jump_max;
  to.engine.clock_jump =
      options.accept_clock_jump ? engine::LogClock::Jump::kAccept : engine::LogClock::Jump::kRefuse;
  to.patience = options.patience;
  return to;
}

// At a start as later: a database that is away, starts, or is full of connections, may soon be
// there.
Status wait_for_server(const std::string& uri, std::chrono::milliseconds patience,
                       const std::function<void(const std::string&)>& log,
                       const postgres::Notice& notice) {
  constexpr std::chrono::milliseconds kPause{200};
  const auto until = std::chrono::steady_clock::now() + patience;
  for (bool told = false;; told = true) {
    auto connection = postgres::Connection::open(uri, {.notice = notice});
    if (connection) return Ok{};
    Error error = std::move(connection).error();
    if (error.code != Errc::kUnavailable) return error;
    if (std::chrono::steady_clock::now() + kPause > until) {
      return std::move(error).within(base::format("waited for it for {} ms", patience.count()));
    }
    if (!told) {
      log(base::format("{}; waiting for it, {} ms at most", error.detail, patience.count()));
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

Result<std::unique_ptr<Store>> open_postgres(const std::string& uri,
                                             const PostgresStoreOptions& options) {
  if (options.segment_bytes < journal::kSegmentBytesMin ||
      options.segment_bytes > journal::kSegmentBytesMax) {
    return Error{
        Errc::kInvalidArgument,
        base::format("segment_bytes is {}; it must be between {} and {}", options.segment_bytes,
                     journal::kSegmentBytesMin, journal::kSegmentBytesMax)};
  }
  const auto log = options.log ? options.log : log_to_stderr;
  const shared_postgres::StorePlace place{uri, options.schema, once_each(log)};
  HAPAX_CHECK(wait_for_server(uri, options.patience, log, place.notice));
  HAPAX_TRY(
      const std::uint32_t segment_bytes,
      shared_postgres::make_store_tables(place, static_cast<std::uint32_t>(options.segment_bytes)));
  auto ports = std::make_shared<DatabasePorts>(place);
  HAPAX_CHECK(journal::check_copied(ports->folder));
  HAPAX_CHECK(journal::check_not_moved(ports->folder));
  HAPAX_CHECK(ports->log.connect());
  HAPAX_TRY(const bool raised, shared_postgres::raise_store_version(place));
  if (raised) {
    log(
        base::format("the store in schema {} now has format {}: older versions of Hapax refuse to "
                     "open it from now on",
                     place.schema, shared_postgres::kStoreVersion));
  }
  const shared::SharedPorts borrowed{ports->log, ports->folder, ports->clock, ports->entropy};
  const std::uint64_t memory_max = host::memory_max_of(options.memory_max, log);
  HAPAX_TRY(auto store, shared::SharedStore::open(
                            ports, borrowed, to_shared(options, segment_bytes, memory_max), log));
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace hapax
