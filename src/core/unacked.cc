// What a consumer is not done with, for people who ask.
#include <algorithm>
#include <cstddef>

#include "core/consumers.h"
#include "core/group_cursor.h"

namespace hapax::core {

namespace {

// As far as a receive looks, so that a question holds up nobody for longer than one.
std::size_t looks_of(const UnackedScan& scan) { return std::size_t{scan.max} * 16 + 1'000; }

void tell_pending(const Pending& pending, UnackedRecord& out) {
  out.attempts = pending.attempts;
  if (pending.past != nullptr) out.reason = last_reason(*pending.past);
  out.until = pending.due;
  switch (pending.state) {
    case PendingState::kInFlight:
      out.state = UnackedState::kInFlight;
      out.since = pending.last_handed_out;
      if (pending.owner != nullptr) out.owner = *pending.owner;
      break;
    case PendingState::kWaiting:
      out.state = UnackedState::kWaiting;
      if (pending.past != nullptr && !pending.past->empty()) {
        out.since = pending.past->back().ended;
      }
      break;
    case PendingState::kBlocked:
      out.state = UnackedState::kBlocked;
      out.until = {};
      break;
  }
}

// REQUIRES: the record is kept, not acked, and for that consumer.
UnackedRecord record_of(const Consumer* consumer, Sequence sequence, GroupHash group) {
  UnackedRecord out;
  out.sequence = sequence;
  if (consumer == nullptr) return out;
  const auto pending = consumer->pending.find(sequence);
  if (pending != consumer->pending.end()) {
    tell_pending(pending->second, out);
    return out;
  }
  const auto head = group == 0 ? consumer->heads.end() : consumer->heads.find(group);
  if (head == consumer->heads.end()) return out;
  out.state = UnackedState::kParked;
  out.behind = head->second;
  return out;
}

}  // namespace

UnackedPage list_unacked(const Stream& stream, const Consumer* consumer, const UnackedScan& scan) {
  UnackedPage page;
  std::size_t looks = looks_of(scan);
  GroupCursor groups(stream);
  for (Sequence at = std::max(scan.from, stream.first);; at = at.next()) {
    at = stream.removed.first_missing(at);
    if (consumer != nullptr) at = consumer->acked.first_missing(at);
    if (at > stream.last) break;
    if (page.records.size() >= scan.max || looks-- == 0) {
      page.next = at;
      break;
    }
    // C9
    if (!stream.offers(scan.consumer, at)) continue;
    page.records.push_back(record_of(consumer, at, groups.at(at)));
  }
  return page;
}

}  // namespace hapax::core
