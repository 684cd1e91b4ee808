// The records that wait for a worker, and which of them may run together.
//
// X1: a record is blamed for the end of its worker only if it was the only record in it. When a
// worker ends with several records, each of them runs again alone. A record whose worker crashed
// runs once more as the first record of a new worker, because an earlier record may have damaged
// the old one's memory.
//
// Programs take turns. While records of a program run alone, its others wait behind them: a program
// that loops holds up one worker and its own records, not those of others. No threads in here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <hapax/result.h>

#include "transform/transform.h"

namespace hapax::transform {

using CompileDone = std::function<void(Result<Compiled>)>;
using RunDone = std::function<void(Result<TransformOutcome>)>;

struct KnownProgram {
  ProgramId id;
  TransformText text;
};

// How careful the pool is with a record; each step follows the death of a worker.
enum class Care : std::uint8_t {
  kTogether,
  kAlone,  // nothing else is in the worker
  kFirst,  // and nothing was
};

struct TransformJob {
  std::shared_ptr<const KnownProgram> program;
  std::string input;
  std::int64_t time_ms = 0;
  CompileDone compiled;  // set: this compiles the program
  RunDone ran;           // set: this runs it
  Care care = Care::kTogether;
  unsigned killed = 0;  // how often somebody else killed its worker

  // What it counts for in limits on bytes.
  [[nodiscard]] std::size_t weight() const { return input.size() + sizeof(TransformJob); }
};

// What the worker that asks can take.
struct Vacancy {
  bool idle = false;           // nothing is in it
  bool unused = false;         // nothing was in it either
  bool only_alone = false;     // it is kept for a job that runs alone
  bool alone_allowed = false;  // enough other workers are left for jobs that run together
  std::size_t jobs_max = 0;
  std::size_t bytes_max = 0;
};

class Backlog {
 public:
  void add(std::unique_ptr<TransformJob> job);
  // Back to where it came from, in the order given and before all others of its program.
  void put_back(std::vector<std::unique_ptr<TransformJob>> jobs);

  // Jobs of one program; none if nothing fits. A job that runs alone comes alone, and its program
  // gets no other turn before alone_ended().
  [[nodiscard]] std::vector<std::unique_ptr<TransformJob>> take(const Vacancy& vacancy);
  void alone_ended(ProgramId program);

  // A job waits that runs alone, and its program has no other that does.
  [[nodiscard]] bool wants_idle() const;
  // And it needs an unused worker.
  [[nodiscard]] bool wants_unused() const { return firsts_ > 0; }
  [[nodiscard]] bool empty() const { return turns_.empty(); }
  [[nodiscard]] std::vector<std::unique_ptr<TransformJob>> take_all();

 private:
  struct Queue {
    std::deque<std::unique_ptr<TransformJob>> suspects;
    std::deque<std::unique_ptr<TransformJob>> others;
    bool alone_runs = false;
    [[nodiscard]] bool empty() const { return suspects.empty() && others.empty(); }
  };

  [[nodiscard]] static bool fits(const Queue& queue, const Vacancy& vacancy);
  std::vector<std::unique_ptr<TransformJob>> take_from(Queue& queue, const Vacancy& vacancy);
  Queue& queue_of(const TransformJob& job);

  std::map<ProgramId, Queue> queues_;
  std::deque<ProgramId> turns_;  // those with jobs, the next one first
  std::size_t suspects_ = 0;     // jobs that run alone
  std::size_t firsts_ = 0;       // those of them that need an unused worker
};

}  // namespace hapax::transform
