// The store behind a running server: the same contract through the protocol of Redis.
#pragma once

#include <filesystem>
#include <memory>

#include <hapax/store.h>

namespace hapax::contract {

// Starts a server on a free port of this machine over the embedded store in the folder. Operations
// are HX commands, alone or between MULTI and EXEC.
[[nodiscard]] Result<std::unique_ptr<Store>> open_behind_resp(const std::filesystem::path& folder);

}  // namespace hapax::contract
