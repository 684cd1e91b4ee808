// The simulator as a program: runs seeds, replays one, prints what it found.
//
//   hapax_sim --seeds 1..20000          many runs; fails with the first broken promise
//   hapax_sim --seed 17 --trace         one run, event by event
//   hapax_sim --seeds 1..100 --hash     one line per seed: two builds must print the same
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "base/format.h"
#include "sim/world.h"

namespace {

using hapax::sim::RunMode;
using hapax::sim::RunOptions;
using hapax::sim::RunResult;
using hapax::sim::Tally;

constexpr std::size_t kLinesShown = 200;

struct Arguments {
  std::uint64_t first = 1;
  std::uint64_t last = 1;
  std::uint64_t steps = 100;
  bool damage = false;
  bool trace = false;
  bool hash = false;
  bool twice = false;   // every run must be the same when it is repeated
  bool guards = false;  // also demand that everything happened at least once
  std::string seeds_file;
};

char replay_line[200];

// An assertion of the store ends the process: say how to see it again.
void on_abort(int) {
  const auto written = write(STDERR_FILENO, replay_line, std::strlen(replay_line));
  static_cast<void>(written);
}

std::string replay(const RunOptions& options) {
  return hapax::base::format("./dev sim --seed={} --steps={}{} --trace", options.seed,
                             options.steps, options.mode == RunMode::kDamage ? " --damage" : "");
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool set_range(Arguments& arguments, std::string_view text) {
  const std::size_t dots = text.find("..");
  const auto first = number(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : number(text.substr(dots + 2));
  if (!first || !last || *first > *last) return false;
  arguments.first = *first;
  arguments.last = *last;
  return true;
}

bool set_option(Arguments& arguments, std::string_view name, std::string_view value) {
  if (name == "--seed" || name == "--seeds") return set_range(arguments, value);
  if (name == "--file") {
    arguments.seeds_file = value;
    return true;
  }
  const auto steps = number(value);
  if (name != "--steps" || !steps) return false;
  arguments.steps = *steps;
  return true;
}

std::optional<Arguments> parse(const std::vector<std::string_view>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--damage") {
      arguments.damage = true;
    } else if (word == "--trace") {
      arguments.trace = true;
    } else if (word == "--hash") {
      arguments.hash = true;
    } else if (word == "--twice") {
      arguments.twice = true;
    } else if (word == "--guards") {
      arguments.guards = true;
    } else {
      const std::size_t equals = word.find('=');
      const bool joined = equals != std::string_view::npos;
      if (!joined && i + 1 == words.size()) return std::nullopt;
      const std::string_view value = joined ? word.substr(equals + 1) : words[++i];
      if (!set_option(arguments, word.substr(0, equals), value)) return std::nullopt;
    }
  }
  return arguments;
}

// The same run once more, with its events; determinism makes it the same.
void explain(RunOptions options, const RunResult& result) {
  std::deque<std::string> lines;
  options.line = [&lines](std::string_view line) {
    lines.emplace_back(line);
    if (lines.size() > kLinesShown) lines.pop_front();
  };
  const RunResult again = run_seed(options);
  for (const std::string& line : lines) std::cout << "  " << line << '\n';
  if (again.hash != result.hash) std::cout << "the repetition of the run was another run\n";
  std::cout << result.violation->invariant << " broken by seed " << options.seed << " at "
            << result.virtual_ms << " ms: " << result.violation->key << ": "
            << result.violation->what << '\n'
            << replay(options) << '\n';
}

bool run_one(const Arguments& arguments, const RunOptions& wanted, Tally& tally) {
  RunOptions options = wanted;
  if (arguments.trace) {
    options.line = [](std::string_view line) { std::cout << line << '\n'; };
  }
  std::snprintf(replay_line, sizeof replay_line, "an assertion failed: %s\n",
                replay(options).c_str());
  const RunResult result = run_seed(options);
  tally.add(result.tally);
  tally.add("runs");
  if (arguments.hash)
    std::cout << options.seed << ' ' << std::hex << result.hash << std::dec << '\n';
  if (arguments.twice && run_seed(wanted).hash != result.hash) {
    std::cout << "not deterministic: " << replay(options) << '\n';
    return false;
  }
  if (!result.violation) return true;
  if (!arguments.trace) {
    explain(wanted, result);
  } else {
    std::cout << result.violation->invariant << " " << result.violation->key << ": "
              << result.violation->what << '\n';
  }
  return false;
}

// A suite in which one of these never happened has not tested it.
bool check_guards(const Tally& tally, bool damage) {
  const std::vector<std::string_view> always = {"answers",
                                                "batches",
                                                "starts",
                                                "snapshots written",
                                                "snapshots loaded",
                                                "states compared",
                                                "verdict fresh",
                                                "verdict duplicate",
                                                "verdict conflict",
                                                "verdict fenced",
                                                "verdict stale",
                                                "verdict in_progress",
                                                "verdict records",
                                                "verdict too_old_to_know",
                                                "verdict unchanged",
                                                "commit ids repeated",
                                                "atomic commits not applied",
                                                "transactions ended",
                                                "verdict expectation_failed"};
  const std::vector<std::string_view> troubles = {"segments removed",
                                                  "copies to later segments",
                                                  "dead letters redriven",
                                                  "producers taken over",
                                                  "rollbacks checked",
                                                  "fault read_error",
                                                  "unknown outcomes",
                                                  "retries of unknown outcomes",
                                                  "crashes inside a call",
                                                  "crashes between calls",
                                                  "crashes during a start",
                                                  "power losses right after an answer",
                                                  "torn tails",
                                                  "tails rewritten",
                                                  "batches refused",
                                                  "fatal errors",
                                                  "clock jumps",
                                                  "full disks",
                                                  "fault short_write",
                                                  "fault no_space",
                                                  "fault write_error",
                                                  "fault sync_error",
                                                  "fault folder_sync_error",
                                                  "fault change_error",
                                                  "fault cache_dropped",
                                                  "fault crash_before",
                                                  "fault crash_middle",
                                                  "fault crash_after",
                                                  "sectors garbled",
                                                  "writes torn",
                                                  "names lost"};
  const std::vector<std::string_view> damages = {"damages", "damage refused"};
  bool all = true;
  for (const auto* list : {&always, damage ? &damages : &troubles}) {
    for (const std::string_view what : *list) {
      if (tally[what] > 0) continue;
      std::cout << "vacuous: '" << what << "' never happened\n";
      all = false;
    }
  }
  return all;
}

// Lines of the file: seed, steps, mode (trouble or damage), and the invariant it once broke.
bool run_file(const Arguments& arguments, Tally& tally) {
  std::ifstream file(arguments.seeds_file);
  if (!file) {
    std::cout << "cannot read " << arguments.seeds_file << '\n';
    return false;
  }
  std::string line;
  bool fine = true;
  while (std::getline(file, line)) {
    if (line.empty() || line.front() == '#') continue;
    RunOptions options;
    char mode[16] = {};
    unsigned long long seed = 0;
    unsigned long long steps = 0;
    if (std::sscanf(line.c_str(), "%llu %llu %15s", &seed, &steps, mode) != 3) {
      std::cout << "cannot read the line: " << line << '\n';
      return false;
    }
    options.seed = seed;
    options.steps = steps;
    options.mode = std::string_view(mode) == "damage" ? RunMode::kDamage : RunMode::kTrouble;
    fine = run_one(arguments, options, tally) && fine;
  }
  return fine;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = parse({argv + 1, argv + argc});
  if (!arguments) {
    std::cerr << "usage: hapax_sim [--seed N | --seeds FROM..TO | --file FILE] [--steps N]"
                 " [--damage] [--trace] [--hash] [--twice] [--guards]\n";
    return 2;
  }
  std::signal(SIGABRT, on_abort);
  Tally tally;
  bool fine = true;
  if (!arguments->seeds_file.empty()) {
    fine = run_file(*arguments, tally);
  } else {
    for (std::uint64_t seed = arguments->first; fine && seed <= arguments->last; ++seed) {
      RunOptions options;
      options.seed = seed;
      options.steps = arguments->steps;
      options.mode = arguments->damage ? RunMode::kDamage : RunMode::kTrouble;
      fine = run_one(*arguments, options, tally);
    }
  }
  if (fine) std::cout << tally["runs"] << " runs, no promise broken\n";
  if (arguments->guards) {
    for (const auto& [what, count] : tally.all()) std::cout << count << ' ' << what << '\n';
    fine = check_guards(tally, arguments->damage) && fine;
  }
  return fine ? 0 : 1;
}
