#include "workflows/attempt_keys.h"

#include <variant>

#include "workflows/own_streams.h"
#include "workflows/plan.h"
#include "workflows/staging.h"

namespace hapax::workflows {

namespace {

using delivery::Workflow;

bool reads_a_stream(const Workflow& workflow) {
  return workflow.source && !std::holds_alternative<delivery::FromOutbox>(*workflow.source);
}

}  // namespace

Result<std::set<std::string>> delivery_keys_of(const Workflow& workflow, const std::string& id,
                                               Store& store) {
  std::set<std::string> keys;
  if (!reads_a_stream(workflow) || id.size() > limits::kMessageIdBytesMax) return keys;
  const auto source = store.read({.stream = source_stream_of(workflow), .max = 1});
  if (!source && source.error().code == Errc::kNotFound) return keys;
  if (!source) return source.error();
  Record record{};
  record.id = id;
  const KeyMaker make = key_maker(workflow, store.id());
  const std::uint32_t outputs = workflow.transform ? kOutputsLookedFor : 1;
  for (const delivery::EndpointSettings& endpoint : workflow.endpoints) {
    const std::string_view name =
        workflow.endpoints.size() > 1 ? endpoint.name : std::string_view();
    for (std::uint32_t output = 0; output < outputs; ++output) {
      keys.insert(make(record, source->stream_uid, {output, name}));
    }
  }
  return keys;
}

std::optional<std::string> attempted_stream_of(const Workflow& workflow) {
  if (!reads_a_stream(workflow)) return std::nullopt;
  return is_staged(workflow) ? outbox_of(workflow).name : source_stream_of(workflow);
}

}  // namespace hapax::workflows
