// How the outboxes of databases do that workflows of this server read. Databases are asked on a
// thread of their own: whoever wants to know is told what they said last.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hapax/result.h>
#include <hapax/time.h>

#include "base/mutex.h"
#include "delivery/workflow.h"
#include "ports/clock.h"
#include "relay/source.h"
#include "serve/backlogs.h"

namespace hapax::serve {

struct OutboxState {
  std::string tenant;
  std::string workflow;
  std::uint64_t pending = 0;  // as far as the database counts them
  std::uint64_t published = 0;
  std::uint64_t dead_letters = 0;
  std::optional<Time> oldest{};  // since when the oldest pending one waits
  std::optional<Time> asked{};   // when the database said so; nothing: it never did
  std::string trouble{};         // why it says nothing now; empty: it does
};

class OutboxSurvey {
 public:
  struct Outbox {
    std::string tenant;
    std::string workflow;
    // The source is open until it fails, and then opened anew. It is only asked for its report.
    std::function<Result<std::unique_ptr<relay::Source>>()> open;
  };

  OutboxSurvey(const std::vector<Outbox>& outboxes, ports::Clock& clock);

  [[nodiscard]] bool empty() const { return asked_.empty(); }
  // Asks all of them, one after the other. One thread at a time.
  void look();

  // In their order. From any thread.
  [[nodiscard]] std::vector<OutboxState> latest() const;
  // The same as backlogs. Those of which nothing was ever said are not known.
  void add_to(BacklogBoard::All& backlogs, Time now) const;

 private:
  struct Asked {
    std::function<Result<std::unique_ptr<relay::Source>>()> open;
    std::unique_ptr<relay::Source> source{};  // of the thread that looks
  };

  [[nodiscard]] static Result<relay::OutboxReport> ask(Asked& asked);

  ports::Clock& clock_;
  std::vector<Asked> asked_;
  mutable base::Mutex mutex_;
  std::vector<OutboxState> latest_ HAPAX_GUARDED_BY(mutex_);
};

// Those that workflows which run read.
using OpenOutboxOf =
    std::function<Result<std::unique_ptr<relay::Source>>(const delivery::Workflow&)>;
[[nodiscard]] std::vector<OutboxSurvey::Outbox> outboxes_of(
    const std::vector<delivery::Workflow>& workflows, const OpenOutboxOf& open);

}  // namespace hapax::serve
