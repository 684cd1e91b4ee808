#include "workflows/attempt_keys.h"

#include <variant>

#include "workflows/own_streams.h"
#include "workflows/plan.h"
#include "workflows/staging.h"

namespace hapax::workflows {

namespace {

using delivery::Workflow;

bool reads_a_stream(const Workflow& workflow) { return source_stream(workflow).has_value(); }

// The record of that message id, if the stream still has it. A key of fields that a workflow names
// is made of its content; every other key is made of the id alone.
Result<Record> record_of(Store& store, const std::string& stream, const std::string& id) {
  Record record{};
  record.id = id;
  HAPAX_TRY(const auto known, store.find_id(stream, id, std::nullopt));
  if (!known) return record;
  HAPAX_TRY(Records found, store.read({.stream = stream, .from = known->sequence, .max = 1}));
  const bool kept = !found.records.empty() && found.records.front().sequence == known->sequence;
  return kept ? std::move(found.records.front()) : record;
}

}  // namespace

Result<std::set<std::string>> delivery_keys_of(const Workflow& workflow, const std::string& id,
                                               Store& store) {
  std::set<std::string> keys;
  if (!reads_a_stream(workflow) || id.size() > limits::kMessageIdBytesMax) return keys;
  const auto source = store.read({.stream = source_stream_of(workflow), .max = 1});
  if (!source && source.error().code == Errc::kNotFound) return keys;
  if (!source) return source.error();
  HAPAX_TRY(const Record record, record_of(store, source_stream_of(workflow), id));
  const KeyMaker make = key_maker(workflow, store.id());
  const std::uint32_t outputs = workflow.transform ? kOutputsLookedFor : 1;
  for (const delivery::EndpointSettings& endpoint : workflow.endpoints) {
    const std::string_view name =
        workflow.endpoints.size() > 1 ? endpoint.name : std::string_view();
    for (std::uint32_t output = 0; output < outputs; ++output) {
      const signing::FanOut fan_out{output, name};
      auto key = make(record, record.payload, source->stream_uid, fan_out);
      if (key) keys.insert(*std::move(key));  // Otherwise the record was never sent.
    }
  }
  return keys;
}

std::optional<std::string> attempted_stream_of(const Workflow& workflow) {
  if (!reads_a_stream(workflow)) return std::nullopt;
  return is_staged(workflow) ? outbox_of(workflow).name : source_stream_of(workflow);
}

}  // namespace hapax::workflows
