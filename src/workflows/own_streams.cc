#include "workflows/own_streams.h"

#include <algorithm>
#include <chrono>
#include <variant>

#include <hapax/limits.h>

namespace hapax::workflows {

namespace {

Status commit_one(Store& store, const Op& op) {
  const Op ops[] = {op};
  HAPAX_TRY(const Answer answer, store.commit({ops}));
  if (const auto* refused = std::get_if<Refused>(&answer.verdicts.at(0))) return refused->error;
  return Ok{};
}

Window window_for(Duration span) {
  const auto whole = std::chrono::ceil<std::chrono::seconds>(span);
  return Window{std::clamp<std::chrono::seconds>(whole, limits::kWindowMin, limits::kWindowMax)};
}

}  // namespace

std::string events_stream_of(const delivery::WorkflowId& id) { return id.text() + ".events"; }

StreamSettings events_settings_of(const delivery::Workflow& workflow) {
  StreamSettings settings;
  settings.window = window_for(workflow.delivery.dedup_ttl);
  settings.retention.age = workflow.delivery.retries.give_up_after +
                           std::max(workflow.retention.delivered, workflow.dead_letter_keep);
  return settings;
}

Status make_stream(Store& store, std::string_view stream, const StreamSettings& settings) {
  Status made = commit_one(store, CreateStream{stream, settings});
  if (made || made.error().code != Errc::kAlreadyExists) return made;
  return commit_one(store, ConfigureStream{stream, settings});
}

}  // namespace hapax::workflows
