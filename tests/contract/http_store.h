// The store behind a running server: the same contract through the door.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <hapax/store.h>

namespace hapax::contract {

// Starts a server on a free port of this machine over the embedded store in the folder, and talks
// to it by plain sockets.
[[nodiscard]] Result<std::unique_ptr<Store>> open_behind_http(const std::filesystem::path& folder);

// Why a case cannot be told through a front door; empty: it can.
[[nodiscard]] std::string not_through_a_door(std::string_view test);

}  // namespace hapax::contract
