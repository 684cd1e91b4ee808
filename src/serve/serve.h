// The server process: a store, its front doors, and an orderly end.
#pragma once

#include <cstdint>
#include <string>

#include <hapax/result.h>

namespace hapax::serve {

struct Options {
  std::string data = "./hapax-data";
  std::string http = "127.0.0.1:7171";  // empty: no such door
  std::string resp = "127.0.0.1:7172";
  std::uint32_t loops = 1;
  std::uint32_t readers = 4;
  std::uint64_t memory_max = std::uint64_t{4} << 30;
  std::uint32_t drain_ms = 10'000;
  bool open_to_all = false;  // listen beyond this machine without authentication
  std::string version;
};

// Serves until SIGTERM or SIGINT. Prints where it listens.
[[nodiscard]] Status run(const Options& options);

}  // namespace hapax::serve
