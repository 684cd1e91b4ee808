#include "serve/waiting_records.h"

#include <algorithm>
#include <utility>

#include "serve/survey.h"
#include "workflows/own_streams.h"

namespace hapax::serve {

std::optional<std::string> consumed_stream(const delivery::Workflow& workflow) {
  const auto source = workflows::source_stream(workflow);
  return source ? std::optional(source->name) : std::nullopt;
}

Result<std::optional<StreamStats>> find_stream(Store& store, std::string_view stream) {
  auto stats = store.describe(stream);
  if (!stats && stats.error().code == Errc::kNotFound) return std::optional<StreamStats>();
  if (!stats) return std::move(stats).error();
  return std::optional(*std::move(stats));
}

void count_waiting(WaitingRecords& records, const StreamStats& stream, std::string_view consumer) {
  std::uint64_t waiting = records_of(stream);
  for (const ConsumerStats& one : stream.consumers) {
    if (one.consumer != consumer) continue;
    waiting = stream.last.value - std::min(one.floor.value, stream.last.value);
    records.in_flight += one.in_flight;
  }
  records.waiting += waiting;
}

}  // namespace hapax::serve
