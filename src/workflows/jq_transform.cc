#include "workflows/jq_transform.h"

#include <future>
#include <utility>
#include <variant>
#include <vector>

#include "base/format.h"

namespace hapax::workflows {

namespace {

using delivery::NotReshaped;
using delivery::Reshaped;
using delivery::ReshapeOutcome;

Error fault_of(const transform::ProgramFault& fault) {
  const std::string place = fault.line == 0 ? std::string() : base::format("line {}: ", fault.line);
  return {Errc::kInvalidArgument, base::format("transform.jq: {}{}", place, fault.message)};
}

ReshapeOutcome outcome_of(transform::TransformOutcome outcome) {
  if (auto* failed = std::get_if<transform::TransformFailed>(&outcome)) {
    return NotReshaped{"transform: " + failed->message};
  }
  std::vector<Reshaped> outputs;
  for (auto& output : std::get<transform::Transformed>(outcome).outputs) {
    outputs.push_back(
        {std::move(output.data), std::move(output.event_type), std::move(output.key)});
  }
  return outputs;
}

}  // namespace

Result<std::unique_ptr<JqTransform>> JqTransform::make(
    transform::TransformPool& pool, const delivery::TransformSettings& settings) {
  transform::TransformText text{.main = settings.jq, .event_type = {}, .key = {}};
  if (settings.numbers == delivery::TransformNumbers::kDouble) {
    text.numbers = transform::TransformNumbers::kDouble;
  }
  const auto answered = std::make_shared<std::promise<Result<transform::Compiled>>>();
  std::future<Result<transform::Compiled>> answer = answered->get_future();
  HAPAX_CHECK(pool.compile(std::move(text), [answered](Result<transform::Compiled> compiled) {
    answered->set_value(std::move(compiled));
  }));
  HAPAX_TRY(const transform::Compiled compiled, answer.get());
  if (const auto* faults = std::get_if<std::vector<transform::ProgramFault>>(&compiled)) {
    return fault_of(faults->front());
  }
  return std::unique_ptr<JqTransform>(
      new JqTransform(pool, std::get<transform::ProgramId>(compiled)));
}

Status JqTransform::start(const std::string& payload, Time time, Done done) {
  return pool_.run(program_, payload, time,
                   [done = std::move(done)](Result<transform::TransformOutcome> outcome) {
                     if (!outcome) return done(std::move(outcome).error());
                     done(outcome_of(*std::move(outcome)));
                   });
}

}  // namespace hapax::workflows
