// The embedded store: a data folder on a local disk, owned by this process. See docs/guide.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <hapax/store.h>

namespace hapax {

// A sync of the journal: how long it took, and how many bytes it made durable.
struct Synced {
  std::chrono::nanoseconds took{0};
  std::uint64_t bytes = 0;
};

struct EmbeddedOptions {
  // Of remembered ids, claims, registers … Not set: half of what the machine has, or of what the
  // control group of this process may take, and at most 4 GiB. The log says so if it is less.
  std::optional<std::uint64_t> memory_max{};
  std::uint64_t segment_bytes = std::uint64_t{256} << 20;
  std::uint64_t snapshot_every_bytes = std::uint64_t{256} << 20;  // of journal
  Duration clock_jump_max{std::chrono::hours{24}};  // a larger jump while running is not believed
  bool accept_clock_jump = false;  // a start sets log time to the wall clock, however far ahead
  std::function<void(const std::string&)> log{};  // one line per notable event; none = stderr
  std::function<void(const Synced&)> synced{};    // on a thread of the store; must not block
};

// Exit code of the process when a sync to disk failed: nothing after it can be trusted.
inline constexpr int kExitSyncFailed = 74;
// Exit code when the data folder is damaged below what was proven durable.
inline constexpr int kExitDamaged = 65;

[[nodiscard]] Result<std::unique_ptr<Store>> open_embedded(const std::filesystem::path& folder,
                                                           const EmbeddedOptions& options = {});

}  // namespace hapax
