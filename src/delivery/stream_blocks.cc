// The part of StreamSource that knows keys that wait, and records that waited for too long.
#include <algorithm>
#include <utility>

#include "base/format.h"
#include "delivery/stream_source.h"
#include "relay/headers.h"

namespace hapax::delivery {

BlockedRecord StreamSource::blocking(const Held& held, const Tries& tries,
                                     std::string_view reason) {
  BlockedRecord record{.receipt = held.receipt,
                       .key = held.group,
                       .since = time_from_ms(log_now_ms()),
                       .attempts = std::max(tries.failed, held.tries.failed + 1),
                       .retries = held.retries,
                       .reason = relay::stored_reason(reason)};
  if (log_) {
    log_(base::format("record {} of stream '{}' blocks its key '{}': {}",
                      held.receipt.sequence.value, settings_.stream, held.group, record.reason));
  }
  return record;
}

// Before everything else of a take, in commits of their own: a receipt that does not count any more
// must not leave a register behind that says that it blocks.
Status StreamSource::settle_blocks() {
  if (given_up_.empty()) return Ok{};
  const auto given = std::exchange(given_up_, {});
  const auto not_taken = blocks_.settle(given, *stream_uid_, time_from_ms(log_now_ms()));
  if (!not_taken) {
    forget();
    return not_taken.error();
  }
  for (const auto& [place, error] : *not_taken) {
    const BlockedRecord& record = given[place].record;
    if (unheld_.size() >= kRememberedMax) unheld_.clear();
    unheld_.insert_or_assign(record.receipt.sequence.value, record);
    if (log_) {
      log_(base::format("record {} of stream '{}' was given up, and that cannot be stored: {}",
                        record.receipt.sequence.value, settings_.stream, error.text()));
    }
  }
  return Ok{};
}

// A record that is handed out although it blocks: its lease has ended. Nobody but a person sends it
// again.
Result<bool> StreamSource::is_held_back(const Delivery& delivery, Held& held) {
  held.group = delivery.record.group;
  if (delivery.attempt <= 1 || held.group.empty()) return false;
  HAPAX_TRY(auto blocked, blocks_.find(*stream_uid_, delivery.record.sequence));
  if (auto unheld = unheld_.extract(delivery.record.sequence.value)) {
    if (!blocked || !blocked->waits) blocked = std::move(unheld.mapped());
  }
  if (!blocked) return false;
  held.retries = blocked->retries;
  if (!blocked->waits) return false;
  blocked->receipt = held.receipt;
  given_up_.push_back({*std::move(blocked)});
  return true;
}

// Z24: nobody waits for what is too old, so it blocks no key. What a person wants sent again is
// sent.
bool StreamSource::has_expired(const Delivery& delivery, const Held& held, Time now) {
  if (held.retries > 0) return false;
  auto reason = keeping_.expired(delivery.record.time, now);
  if (!reason) return false;
  if (log_) {
    log_(base::format("record {} of stream '{}' is a dead letter: {}", held.receipt.sequence.value,
                      settings_.stream, *reason));
  }
  Held given_up = held;
  given_up.group.clear();
  overruled_.push_back(
      {std::move(given_up), Overruled::To::kDeadLetter, {}, *std::move(reason), {}});
  return true;
}

}  // namespace hapax::delivery
