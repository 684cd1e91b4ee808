// The yardstick of deliveries: libcurl alone, without store and retry, posting to the same URL.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "folder.h"
#include "processes.h"

namespace hapax::bench {

// Posts per second, `width` at a time. Nothing if the folder has no such program.
inline std::optional<double> deliver_limit(const std::string& limit_dir, const std::string& url,
                                           std::uint64_t count, std::size_t width) {
  const fs::path program = fs::path(limit_dir) / "deliver";
  if (limit_dir.empty() || !fs::exists(program)) return std::nullopt;
  const std::string text = output_of("'" + fs::absolute(program).string() + "' " + url + " " +
                                     std::to_string(count) + " " + std::to_string(width));
  const std::size_t colon = text.rfind(": ");
  if (colon == std::string::npos) fail("the yardstick answered '" + text + "'");
  return std::strtod(text.c_str() + colon + 2, nullptr);
}

}  // namespace hapax::bench
