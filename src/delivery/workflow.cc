#include "delivery/workflow.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/words.h"

namespace hapax::delivery {

namespace {

Error bad_word(std::string what) { return {Errc::kInvalidArgument, std::move(what)}; }

}  // namespace

Result<WorkflowId> WorkflowId::parse(std::string_view text) {
  const auto plain = [](char c) {
    const char lower = base::to_lower(c);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9');
  };
  const auto fits = [&](char c) { return plain(c) || c == '-' || c == '_' || c == '.'; };
  const bool good = !text.empty() && text.size() <= kBytesMax && plain(text.front()) &&
                    std::all_of(text.begin(), text.end(), fits);
  if (good) return WorkflowId(text);
  return bad_word(base::format(
      "must be 1 to {} letters, digits, '-', '_' and '.', and begin with a letter or digit",
      kBytesMax));
}

bool keeps(Mechanism mechanism, Guarantee guarantee) {
  switch (mechanism) {
    case Mechanism::kTransactionalOutbox:
      return guarantee == Guarantee::kExactlyOnce;
    case Mechanism::kGeneratedKeys:
      return guarantee == Guarantee::kIdempotentKeys;
    case Mechanism::kKafkaOffsets:
    case Mechanism::kSourcePositions:
      return guarantee != Guarantee::kExactlyOnce;
  }
  return false;
}

bool is_staged(const Workflow& workflow) {
  const auto& endpoints = workflow.endpoints;
  return workflow.transform || endpoints.size() > 1 ||
         (!endpoints.empty() && endpoints.front().stream() != nullptr);
}

bool stores_rows(const Workflow& workflow) {
  if (!workflow.source || !std::holds_alternative<FromOutbox>(*workflow.source)) return false;
  // A table that was there before has no place for leases.
  const auto& tables = std::get<FromOutbox>(*workflow.source).tables;
  if (!std::holds_alternative<OwnOutboxTables>(tables)) return true;
  const Guarantee guarantee = workflow.delivery.guarantee;
  const bool notes = guarantee == Guarantee::kAtMostOnce || guarantee == Guarantee::kExactlyOnce;
  return is_staged(workflow) || notes || hold_of(workflow.order());
}

std::optional<Duration> hold_of(const Ordering& ordering) {
  if (ordering.key == OrderingKey::kNone) return std::nullopt;
  if (std::holds_alternative<BlockKey>(ordering.on_failure)) return Duration::max();
  const auto* span = std::get_if<BlockKeyFor>(&ordering.on_failure);
  return span == nullptr ? std::nullopt : std::optional(span->time);
}

}  // namespace hapax::delivery
