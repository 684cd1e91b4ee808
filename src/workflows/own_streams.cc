#include "workflows/own_streams.h"

#include <algorithm>
#include <chrono>

#include <hapax/limits.h>

namespace hapax::workflows {

namespace {

Window window_for(Duration span) {
  const auto whole = std::chrono::ceil<std::chrono::seconds>(span);
  return Window{std::clamp<std::chrono::seconds>(whole, limits::kWindowMin, limits::kWindowMax)};
}

}  // namespace

std::string events_stream_of(const delivery::WorkflowId& id) { return id.text() + ".events"; }

delivery::OwnStream events_of(const delivery::Workflow& workflow) {
  delivery::OwnStream events{.name = events_stream_of(workflow.id), .settings = {}};
  events.settings.window = window_for(workflow.delivery.dedup_ttl);
  return events;
}

delivery::OwnStream outbox_of(const delivery::Workflow& workflow) {
  delivery::OwnStream outbox{.name = workflow.id.text() + ".outbox", .settings = {}};
  outbox.settings.window =
      window_for(std::max({workflow.delivery.dedup_ttl, workflow.retention.delivered,
                           workflow.delivery.retries.give_up_after}));
  outbox.settings.record_bytes_max = limits::kRecordBytesMax;
  outbox.settings.track_groups = false;
  return outbox;
}

}  // namespace hapax::workflows
