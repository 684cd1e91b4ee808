#include "workflows/own_streams.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include <hapax/limits.h>

#include "workflows/plan.h"
#include "workflows/staging.h"

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

delivery::OwnStream rows_of(const delivery::Workflow& workflow) {
  delivery::OwnStream rows = outbox_of(workflow);
  rows.name = workflow.id.text() + ".rows";
  return rows;
}

std::optional<SourceStream> source_stream(const delivery::Workflow& workflow) {
  if (!workflow.source) return std::nullopt;
  if (const auto* from = std::get_if<delivery::FromStream>(&*workflow.source)) {
    return SourceStream{from->stream};
  }
  if (std::holds_alternative<delivery::FromHttp>(*workflow.source)) {
    return SourceStream{events_stream_of(workflow.id), true};
  }
  if (!delivery::stores_rows(workflow)) return std::nullopt;
  return SourceStream{rows_of(workflow).name, true};
}

std::string attempts_stream_of(std::string_view workflow) {
  return std::string(workflow) + ".attempts";
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

std::string blocked_registers_of(const delivery::WorkflowId& id) { return id.text() + ".blocked"; }

std::optional<Duration> hold_of(const delivery::Workflow& workflow) {
  const auto hold = delivery::hold_of(workflow.order());
  return hold ? std::optional(std::min(*hold, workflow.dead_letter_keep)) : std::nullopt;
}

delivery::Keeping keeping_of(const delivery::Workflow& workflow) {
  const std::string& id = workflow.id.text();
  return {.began = id + ".began", .lost = id + ".lost", .keep = workflow.dead_letter_keep};
}

std::vector<delivery::BlockTerms> block_terms_of(const delivery::Workflow& workflow) {
  const auto source = source_stream(workflow);
  if (workflow.draft() || !source) return {};
  const auto terms_for = [&](std::string stream) {
    return delivery::BlockTerms{.stream = std::move(stream),
                                .consumer = workflow.id.text(),
                                .registers = blocked_registers_of(workflow.id),
                                .hold = hold_of(workflow)};
  };
  std::vector<delivery::BlockTerms> all;
  all.push_back(terms_for(source->name));
  if (has_outbox(workflow)) all.push_back(terms_for(outbox_of(workflow).name));
  return all;
}

}  // namespace hapax::workflows
