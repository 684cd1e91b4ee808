#include "delivery/workflow_streams.h"

#include <algorithm>

#include <hapax/limits.h>

#include "base/format.h"

namespace hapax::delivery {

namespace {

Status run_alone(Store& store, const Op& op) {
  HAPAX_TRY(const Answer answer, store.commit({.ops = {&op, 1}, .mode = Mode::kEach}));
  if (const auto* refused = std::get_if<Refused>(&answer.verdicts.front())) return refused->error;
  return Ok{};
}

}  // namespace

Result<std::uint64_t> find_source(Store& store, std::string_view stream) {
  HAPAX_TRY(const StreamStats stats, store.describe(stream));
  // Keys of deliveries are made of message ids, which must be unique in the stream.
  if (stats.settings.id_scope == IdScope::kGroup) {
    return Error{
        Errc::kPreconditionFailed,
        base::format("stream '{}' has ids that are unique per group only (id_scope); records "
                     "of a workflow need ids that are unique in the stream",
                     stream)};
  }
  HAPAX_TRY(const Records found, store.read({.stream = stream, .max = 1}));
  return found.stream_uid;
}

ConsumerSettings workflow_consumer(std::string_view dead_letters) {
  ConsumerSettings settings;
  settings.attempts_max = limits::kAttemptsMax;
  settings.dead_letters = dead_letters;
  settings.in_flight_max = limits::kInFlightPerConsumerMax;
  return settings;
}

Status ensure_stream(Store& store, const OwnStream& stream) {
  const Status made = run_alone(store, CreateStream{stream.name, stream.settings});
  if (made || made.error().code != Errc::kAlreadyExists) return made;
  return run_alone(store, ConfigureStream{stream.name, stream.settings});
}

// Times of a stream never go back, so halving finds it.
Result<Sequence> first_since(Store& store, std::string_view stream, Sequence from, Sequence end,
                             Time since) {
  while (from < end) {
    const Sequence middle{from.value + (end.value - from.value) / 2};
    HAPAX_TRY(const Records found, store.read({.stream = stream, .from = middle, .max = 1}));
    const bool earlier = !found.records.empty() && found.records.front().sequence < end &&
                         found.records.front().time < since;
    if (earlier) {
      from = found.records.front().sequence.next();
    } else {
      end = middle;
    }
  }
  return from;
}

Status trim_delivered(Store& store, std::string_view stream, std::string_view consumer,
                      Time before) {
  HAPAX_TRY(const StreamStats stats, store.describe(stream));
  const auto known =
      std::find_if(stats.consumers.begin(), stats.consumers.end(),
                   [&](const ConsumerStats& each) { return each.consumer == consumer; });
  if (known == stats.consumers.end()) return Ok{};
  // What is below it and not below the first may go.
  const Sequence end = known->floor.next();
  HAPAX_TRY(const Sequence first, first_since(store, stream, stats.first, end, before));
  if (first <= stats.first) return Ok{};
  return run_alone(store, Trim{stream, first});
}

}  // namespace hapax::delivery
