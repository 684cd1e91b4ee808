// One run of the simulation: a store on a simulated disk, its clients, and a scheduler that takes
// every decision from the seed. It drives the engine as the threads of the embedded store do
// (engine/embedded_store.h), one step at a time, so that every order of their steps can happen.
//
// Phases: trouble (faults on), healing (faults off: everything must drain, I16), judgement.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "sim/checks.h"
#include "sim/clock.h"
#include "sim/disk.h"
#include "sim/entropy.h"
#include "sim/swarm.h"
#include "sim/tally.h"
#include "sim/workload.h"

namespace hapax::sim {

enum class RunMode : std::uint8_t {
  kTrouble,  // everything that must be survived; a refusal to start is a failure (I8)
  kDamage,   // the disk lies or rots: to refuse is right, to lie is a failure (I1, I7)
};

struct RunOptions {
  std::uint64_t seed = 1;
  std::uint64_t steps = 100;
  RunMode mode = RunMode::kTrouble;
  std::function<void(std::string_view)> line;  // one line per event; none = faster
};

struct RunResult {
  std::optional<Violation> violation;
  std::int64_t virtual_ms = 0;  // at the end
  std::uint64_t hash = 0;       // of everything that happened
  Tally tally;
};

// A whole run.
[[nodiscard]] RunResult run_seed(const RunOptions& options);

class World {
 public:
  explicit World(const RunOptions& options);
  [[nodiscard]] RunResult run();

 private:
  struct Memory {  // of the state, to be found again after a restart
    std::string state;
    Time at{};
  };
  enum class Exit : std::uint8_t { kKill, kPowerLoss, kClean };

  // Life and death of the process (world_life.cc).
  void start();
  bool try_start(std::uint32_t tries);
  void note_refusal(const Error& error);
  void check_untouched(const std::vector<std::string>& before);
  void check_start();
  void put_strangers_file();
  void guarded(const std::function<void()>& act);
  void die(Exit exit);
  void end_process();
  void close_clean();
  void do_damage();
  [[nodiscard]] engine::EngineOptions engine_options() const;

  // The scheduler.
  void step();
  void submit_next();
  const Attempt& submit(const SharedSimRequest& request);
  void answered(Attempt& attempt, engine::Finished finished);
  void look_for(std::uint32_t client);
  void read_some();
  Result<std::vector<Record>> read_places(std::vector<engine::RecordPlace>& places);
  void drive();
  void seal();
  void write();
  void check_rolled_back();
  void mark(journal::MarkKind kind);
  void tend();
  void step_snapshot();
  void change_space();

  // Time (world_time.cc).
  void pass_time();
  void idle();
  void jump_clock();
  void pass_time_while_off();
  void note_time();
  void begin_life_time();
  void end_life_time();
  void check_log_time(const Answer& answer);
  void check_dated(const SimRequest& request, const Answer& answer, const core::Moment& moment);
  void see_dated(const Op& op, const Held& held, const core::Moment& moment);

  // After the trouble (world_heal.cc).
  void heal();
  void settle_down();
  Result<Answer> commit_now(const SharedSimRequest& request);
  void drain(const std::string& stream, const std::string& consumer);
  void retry_unresolved();
  void check_claims_move();
  void judge();
  void judge_reopened();
  [[nodiscard]] Contents read_all();
  void count_outcomes();

  void fail(std::string_view invariant, std::string key, std::string what);
  void say(std::string_view line) const;
  [[nodiscard]] bool over() const { return result_.violation.has_value() || refused_; }
  [[nodiscard]] engine::Machine& machine() { return engine_->machine(); }

  const RunOptions options_;
  const Random random_;
  const Swarm swarm_;
  Random scheduler_;
  Random damage_;
  Random time_;
  SimClock clock_;
  SimEntropy entropy_;
  SimDisk disk_;
  std::unique_ptr<SimFolder> folder_;
  std::unique_ptr<engine::Engine> engine_;
  Workload workload_;
  History history_;
  RunResult result_;

  journal::Batch* sealed_ = nullptr;
  core::StreamUid sweep_from_;
  std::optional<Memory> memory_;
  bool troubled_ = false;  // faults are on
  bool refused_ = false;   // damage was found and the store does not start
  bool damaged_ = false;
  bool full_ = false;                // the space limit is on
  bool time_refused_ = false;        // the latest batch was refused: nobody waits for log time
  Time last_time_{};                 // of an answer of this process: log time never goes back
  Time told_time_{};                 // of an answer that must not be true any earlier (W5)
  Time noted_time_{};                // that the next mark takes along, …
  Time marked_time_{};               // … and that the latest mark did
  std::optional<Time> died_time_;    // log time when the process before ended
  std::int64_t life_steady_ms_ = 0;  // when the process or the last jump began
  Time life_time_{};
  std::int64_t life_allowance_ms_ = 0;
  // The register "dated", if the clock was not set since, nor the process started again.
  struct Dated {
    Version version;
    Time until{};  // of the wall clock
  };
  std::optional<Dated> dated_;
};

}  // namespace hapax::sim
