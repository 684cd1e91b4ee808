// Keeps what a process runs as it is declared: by its file, and in the store that it may share with
// other processes. A state machine: whoever owns it says when to go on.
//
// F3: what is durable is followed. A process that dies between the two finds it at its next start;
//      a step that fails anywhere is made again.
// F4: a workflow of the file is the file's: nothing else changes it. When it leaves the file it is
//      kept, with all that it has, and does not run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/result.h>
#include <hapax/store.h>
#include <hapax/time.h>

#include "delivery/workflow.h"
#include "ports/clock.h"
#include "serve/declarations.h"
#include "serve/workflow_board.h"

namespace hapax::serve {

// What runs workflows.
class WorkflowRunner {
 public:
  WorkflowRunner() = default;
  WorkflowRunner(const WorkflowRunner&) = delete;
  WorkflowRunner& operator=(const WorkflowRunner&) = delete;
  virtual ~WorkflowRunner() = default;

  // As workflows::Host does. An error changes nothing.
  [[nodiscard]] virtual Status put(const delivery::Workflow& workflow) = 0;
  virtual void remove(const WorkflowName& name) = 0;
  [[nodiscard]] virtual bool is_gone(const WorkflowName& name) const = 0;
  virtual void tend() = 0;
  // Nothing winds down.
  [[nodiscard]] virtual bool is_settled() const = 0;
};

struct FollowerPorts {
  Store& store;  // the whole one
  WorkflowRunner& runner;
  ports::Clock& clock;
  std::function<void(const std::string& workflow, std::string_view line)> log;
  // So long after a removal begins, every process that shares the store has ended the workflow.
  Duration others_end{0};
};

class WorkflowFollower {
 public:
  static constexpr Duration kSoon{50};
  static constexpr Duration kAgain{1'000};     // after a failure
  static constexpr Duration kAtLeast{30'000};  // although nobody woke it

  // What it knows is told on the board, which outlives it.
  WorkflowFollower(FollowerPorts ports, WorkflowBoard& board);

  // The workflows of the file, of which those that can run do so already.
  void adopt(const std::vector<delivery::Workflow>& file);
  // What the file says from now on.
  void set_file(const std::vector<delivery::Workflow>& file);
  // Does what can be done now, and answers when to go on if nobody wakes it before.
  [[nodiscard]] Duration step();

 private:
  struct Place {
    std::optional<delivery::Workflow> file{};
    bool noted = true;  // the store knows what the file says
    std::optional<StoredDeclaration> stored{};
    std::optional<delivery::Workflow> running{};  // as the runner has it
    std::string trouble{};                        // with the runner
    std::string store_trouble{};                  // with the store
    std::int64_t again_ms = 0;                    // no other try before
    std::optional<std::int64_t> removing_since_ms{};

    [[nodiscard]] bool empty() const { return !file && !stored && !running; }
    [[nodiscard]] const delivery::Workflow* wanted() const;
  };

  void publish();
  [[nodiscard]] Status look();
  [[nodiscard]] Status look_at_all();
  [[nodiscard]] Status look_at(const WorkflowName& name);
  // Whether there is more to do soon.
  [[nodiscard]] bool tend(const WorkflowName& name, Place& place);
  void run_wanted(const WorkflowName& name, Place& place);
  // A trouble is logged once, and tried again after a while.
  void tell(const WorkflowName& name, Place& place, std::string& told, const Status& status);
  [[nodiscard]] Status note(const WorkflowName& name, Place& place);
  [[nodiscard]] Status remove(const WorkflowName& name, Place& place);

  const FollowerPorts ports_;
  WorkflowBoard& board_;
  Declarations declarations_;
  std::map<WorkflowName, Place> places_;
  std::optional<Declarations::Place> followed_;  // nothing: all is to be read
  bool store_fails_ = false;
};

}  // namespace hapax::serve
