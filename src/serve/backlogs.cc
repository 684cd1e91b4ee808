#include "serve/backlogs.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/tenant_frame.h"
#include "delivery/workflow_runs.h"
#include "workflows/own_streams.h"

namespace hapax::serve {

namespace {

using delivery::Workflow;

class Backlogs {
 public:
  Backlogs(Store& store, const Survey& survey) : store_(store), now_(survey.store.log_time) {
    for (const StreamStats& stream : survey.streams) by_name_.emplace(stream.stream, &stream);
  }

  [[nodiscard]] Backlog of(const Workflow& workflow) {
    const std::string& id = workflow.id.text();
    Backlog backlog{.tenant = workflow.tenant, .workflow = id};
    if (const auto source = workflows::source_stream(workflow)) add(backlog, source->name);
    add(backlog, workflows::outbox_of(workflow).name);
    const StreamStats* const dead = find(workflow.tenant, id + ".dead");
    backlog.dead_letters = dead == nullptr ? 0 : records_of(*dead);
    return backlog;
  }

 private:
  [[nodiscard]] const StreamStats* find(std::string_view tenant, std::string_view name) const {
    const auto found = by_name_.find(base::StoreName{tenant, name}.text());
    return found == by_name_.end() ? nullptr : found->second;
  }

  // What the workflow has not acknowledged there. Before it has begun that is all there is.
  void add(Backlog& backlog, std::string_view name) {
    const StreamStats* const stream = find(backlog.tenant, name);
    if (stream == nullptr) return;
    Sequence from = stream->first;
    for (const ConsumerStats& one : stream->consumers) {
      if (one.consumer == backlog.workflow) from = std::max(from, one.floor.next());
    }
    if (from > stream->last) return;
    backlog.records += stream->last.value + 1 - from.value;
    backlog.behind = std::max(backlog.behind, behind(*stream, from));
  }

  [[nodiscard]] Duration behind(const StreamStats& stream, Sequence from) {
    if (reads_ == kBacklogReadsMax) return Duration{0};
    ++reads_;
    const auto read =
        store_.read({.stream = stream.stream, .from = from, .max = 1, .bytes_max = 1});
    if (!read || read->records.empty()) return Duration{0};
    return std::max(now_ - read->records.front().time, Duration{0});
  }

  Store& store_;
  const Time now_;
  std::unordered_map<std::string_view, const StreamStats*> by_name_;
  std::size_t reads_ = 0;
};

}  // namespace

std::vector<Backlog> take_backlogs(Store& store, const Survey& survey,
                                   const std::vector<Workflow>& workflows) {
  Backlogs backlogs(store, survey);
  std::vector<Backlog> all;
  for (const Workflow& workflow : workflows) {
    if (!workflows::source_stream(workflow) || delivery::why_not_run(workflow)) continue;
    all.push_back(backlogs.of(workflow));
  }
  return all;
}

}  // namespace hapax::serve
