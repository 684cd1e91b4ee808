// Where the embedded store meets the real disk and the real clock.
#include <cstdio>
#include <memory>
#include <utility>

#include <unistd.h>

#include <hapax/embedded.h>

#include "base/format.h"
#include "embedded/watched_folder.h"
#include "engine/embedded_store.h"
#include "engine/engine.h"
#include "host/clock.h"
#include "host/entropy.h"
#include "host/folder.h"
#include "host/memory.h"

namespace hapax {

namespace {

struct HostPorts {
  std::unique_ptr<ports::Folder> folder;
  host::HostClock clock;
  host::HostEntropy entropy;
};

using LogSink = std::function<void(const std::string&)>;

void log_to_stderr(const std::string& line) { std::fprintf(stderr, "hapax: %s\n", line.c_str()); }

// L2: after a failed sync the kernel may have dropped the pages and marked them clean. Only a new
// process that reads what is really there can go on, so this one ends without tidying up.
[[noreturn]] void end_process(const LogSink& log, const Error& error) {
  log(error.text() + " The process ends; start it again to recover.");
  ::_exit(kExitSyncFailed);
}

constexpr std::uint64_t kSnapshotEveryMin = 4'096;  // fewer, and it does nothing else
// The wall clock is followed at once over so much; less would not even believe that.
constexpr Duration kClockJumpMin{2'000};

Status check_options(const EmbeddedOptions& options) {
  if (options.segment_bytes < journal::kSegmentBytesMin ||
      options.segment_bytes > journal::kSegmentBytesMax) {
    return Error{
        Errc::kInvalidArgument,
        base::format("segment_bytes is {}; it must be between {} and {}", options.segment_bytes,
                     journal::kSegmentBytesMin, journal::kSegmentBytesMax)};
  }
  if (options.snapshot_every_bytes < kSnapshotEveryMin) {
    return Error{Errc::kInvalidArgument,
                 base::format("snapshot_every_bytes is {}; it must be at least {}",
                              options.snapshot_every_bytes, kSnapshotEveryMin)};
  }
  if (options.clock_jump_max < kClockJumpMin) {
    return Error{Errc::kInvalidArgument,
                 base::format("clock_jump_max is {} ms; it must be at least {}",
                              options.clock_jump_max.count(), kClockJumpMin.count())};
  }
  return Ok{};
}

engine::EngineOptions to_engine(const EmbeddedOptions& options, std::uint64_t memory_max) {
  engine::EngineOptions to;
  to.memory_max = memory_max;
  to.segment_bytes = static_cast<std::uint32_t>(options.segment_bytes);
  to.snapshot_every_bytes = options.snapshot_every_bytes;
  to.clock_jump_max = options.clock_jump_max;
  to.clock_jump =
      options.accept_clock_jump ? engine::LogClock::Jump::kAccept : engine::LogClock::Jump::kRefuse;
  return to;
}

}  // namespace

Result<std::unique_ptr<Store>> open_embedded(const std::filesystem::path& folder,
                                             const EmbeddedOptions& options) {
  HAPAX_CHECK(check_options(options));
  const LogSink log = options.log ? options.log : log_to_stderr;
  auto ports = std::make_shared<HostPorts>();
  HAPAX_TRY(ports->folder,
            host::DiskFolder::open_folder(folder, host::FolderMode::kCreateIfMissing));
  if (options.synced) {
    ports->folder = embedded::watch_syncs(std::move(ports->folder), options.synced);
  }
  HAPAX_TRY(std::unique_ptr<engine::Engine> engine,
            engine::Engine::open(*ports->folder, ports->clock, ports->entropy,
                                 to_engine(options, host::memory_max_of(options.memory_max, log))));
  for (const std::string& line : engine->report().lines) log(line);
  auto fatal = [log](const Error& error) { end_process(log, error); };
  std::unique_ptr<Store> store = std::make_unique<engine::EmbeddedStore>(
      std::move(ports), std::move(engine), std::move(fatal), log);
  return store;
}

}  // namespace hapax
