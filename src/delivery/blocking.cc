#include "delivery/blocking.h"

#include <utility>

#include "base/assert.h"

namespace hapax::delivery {

namespace {

using relay::SinkDelivery;
using Ending = SinkDelivery::Ending;
using Outcome = SendResult::Outcome;

// Of the record at which a sink stopped.
SendResult stopped_at(SinkDelivery& delivery) {
  SendResult result{.outcome = Outcome::kTryLater,
                    .answered = delivery.ending == Ending::kFailed,
                    .after = delivery.after,
                    .reason = std::move(delivery.reason)};
  if (delivery.ending == Ending::kRefused) {
    result.outcome = Outcome::kRejected;
    result.answered = true;
    result.after = Duration{0};
  }
  // With a reason bytes left, and the lease ended before the answer came.
  if (delivery.ending == Ending::kOutOfTime) {
    result.cut_off = !result.reason.empty();
    result.outcome = result.cut_off ? Outcome::kUnknown : Outcome::kNotSent;
  }
  return result;
}

}  // namespace

std::vector<SendResult> deliver_now(relay::Sink& sink, ports::Clock& clock,
                                    std::span<const Outgoing* const> records,
                                    std::int64_t not_after_ms, const std::atomic<bool>* withdrawn) {
  const relay::Permit permit(clock, not_after_ms, withdrawn);
  SinkDelivery delivery{.ending = Ending::kOutOfTime};
  if (permit.good()) delivery = sink.deliver(records, permit);
  HAPAX_ASSERT(delivery.ending == Ending::kAll ? delivery.accepted == records.size()
                                               : delivery.accepted < records.size(),
               "a sink says of each record what became of it");
  std::vector<SendResult> results(delivery.accepted);
  if (delivery.ending == Ending::kAll) return results;
  results.push_back(stopped_at(delivery));
  results.resize(records.size(), {.outcome = Outcome::kNotSent});
  return results;
}

}  // namespace hapax::delivery
