#include "serve/outbox_survey.h"

#include <algorithm>
#include <variant>

#include "delivery/workflow_runs.h"

namespace hapax::serve {

namespace {

void take(OutboxState& state, const relay::OutboxReport& report, Time now) {
  state.pending = 0;
  state.published = 0;
  state.dead_letters = report.dead_letters;
  std::optional<Duration> oldest;
  for (const relay::LaneReport& lane : report.lanes) {
    state.pending += lane.waiting + lane.retries;
    state.published += lane.sent;
    if (!lane.oldest_waiting) continue;
    oldest = std::max(oldest.value_or(Duration{0}), *lane.oldest_waiting);
  }
  state.oldest = oldest ? std::optional(now - *oldest) : std::nullopt;
  state.asked = now;
  state.trouble.clear();
}

}  // namespace

std::vector<OutboxSurvey::Outbox> outboxes_of(const std::vector<delivery::Workflow>& workflows,
                                              const OpenOutboxOf& open) {
  std::vector<OutboxSurvey::Outbox> all;
  for (const delivery::Workflow& workflow : workflows) {
    const bool outbox =
        workflow.source && std::holds_alternative<delivery::FromOutbox>(*workflow.source);
    if (!outbox || delivery::why_not_run(workflow)) continue;
    all.push_back(
        {workflow.tenant, workflow.id.text(), [open, workflow] { return open(workflow); }});
  }
  return all;
}

OutboxSurvey::OutboxSurvey(const std::vector<Outbox>& outboxes, ports::Clock& clock)
    : clock_(clock) {
  const base::MutexLock lock(mutex_);
  for (const Outbox& outbox : outboxes) {
    asked_.push_back({outbox.open});
    latest_.push_back(
        {.tenant = outbox.tenant, .workflow = outbox.workflow, .trouble = "it was not asked yet"});
  }
}

Result<relay::OutboxReport> OutboxSurvey::ask(Asked& asked) {
  if (!asked.source) {
    HAPAX_TRY(asked.source, asked.open());
  }
  auto report = asked.source->report();
  if (!report) asked.source.reset();
  return report;
}

// The lock is not held while a database is asked.
void OutboxSurvey::look() {
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    const Result<relay::OutboxReport> report = ask(asked_[i]);
    const Time now = time_from_ms(clock_.wall_ms());
    const base::MutexLock lock(mutex_);
    if (report) {
      take(latest_[i], *report, now);
    } else {
      latest_[i].trouble = report.error().text();
    }
  }
}

std::vector<OutboxState> OutboxSurvey::latest() const {
  const base::MutexLock lock(mutex_);
  return latest_;
}

void OutboxSurvey::add_to(BacklogBoard::All& backlogs, Time now) const {
  for (const OutboxState& state : latest()) {
    Backlog backlog{.tenant = state.tenant, .workflow = state.workflow};
    backlog.known = state.asked.has_value();
    backlog.records = state.pending;
    if (state.oldest) backlog.behind = std::max(now - *state.oldest, Duration{0});
    backlog.dead_letters = state.dead_letters;
    const auto known = std::find_if(backlogs.begin(), backlogs.end(), [&](const Backlog& each) {
      return each.tenant == backlog.tenant && each.workflow == backlog.workflow;
    });
    if (known == backlogs.end()) {
      backlogs.push_back(std::move(backlog));
      continue;
    }
    // Its rows go through a stream of the workflow.
    known->known = known->known && backlog.known;
    known->records += backlog.records;
    known->behind = std::max(known->behind, backlog.behind);
    known->dead_letters += backlog.dead_letters;
  }
}

}  // namespace hapax::serve
