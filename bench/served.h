// `hapax serve` in a folder of its own, and what its benchmarks share.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "clients.h"
#include "options.h"

namespace hapax::bench {

inline const std::string kPayload(100, 'x');

struct Hapax {
  Folder folder;
  std::uint16_t http = free_port();
  std::uint16_t resp = free_port();
  Running server;

  explicit Hapax(const Options& options) : Hapax(options, [](const Folder&) { return ""; }) {}

  // `configure` makes what the configuration needs in the folder, and says it.
  template <class Configure>
  Hapax(const Options& options, const Configure& configure)
      : server(command(options, configure(folder)), http) {
    // It accepts connections before it has read its journal.
    const std::string ready = "http://127.0.0.1:" + std::to_string(http) + "/health/ready";
    output_of("for i in $(seq 1000); do curl -sf " + ready + " && break; sleep 0.01; done");
  }

 private:
  [[nodiscard]] std::vector<std::string> command(const Options& options,
                                                 const std::string& config) const {
    std::ofstream(folder.path("hapax.yaml")) << config;
    return {options.hapax, "serve",
            "--config",    folder.path("hapax.yaml"),
            "--data",      folder.path("store"),
            "--http",      "127.0.0.1:" + std::to_string(http),
            "--resp",      "127.0.0.1:" + std::to_string(resp)};
  }
};

}  // namespace hapax::bench
