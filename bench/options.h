// What the benchmarks that drive the `hapax` command are told, and how they end.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "folder.h"
#include "table.h"

namespace hapax::bench {

struct Options {
  std::string hapax = "build/hapax";
  std::string json;
  std::string only;
  std::string limit_dir;                               // with the yardstick programs
  std::string newer_nats = "build/peers/nats-server";  // 2.10 or later
  double seconds = 4;
  int rounds = 3;
  int held = 2;  // seconds that a transaction is open before a relay is measured beside it
  bool quick = false;

  [[nodiscard]] bool wants(std::string_view part) const { return only.empty() || only == part; }
};

inline Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) fail(word + " needs a value");
      return argv[++i];
    };
    if (word == "--json") {
      options.json = value();
    } else if (word == "--only") {
      options.only = value();
    } else if (word == "--hapax") {
      options.hapax = value();
    } else if (word == "--limit-dir") {
      options.limit_dir = value();
    } else if (word == "--newer-nats") {
      options.newer_nats = value();
    } else if (word == "--held") {
      options.held = std::stoi(value());
    } else if (word == "--quick") {
      options.quick = true;
      options.seconds = 2;
      options.rounds = 1;
    } else {
      fail("unknown argument '" + word + "'; known: --json FILE, --hapax PROGRAM, --only PART, " +
           "--limit-dir FOLDER, --newer-nats PROGRAM, --held SECONDS, --quick");
    }
  }
  return options;
}

// The exit code.
inline int finish(const Table& table, const Options& options) {
  if (!options.json.empty() && !table.write_json(options.json)) {
    fail("cannot write " + options.json);
  }
  return table.all_ok() ? 0 : 1;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace hapax::bench
