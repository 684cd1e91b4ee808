// The header fields of one attempt to send a record.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <hapax/ops.h>
#include <hapax/result.h>
#include <hapax/time.h>

#include "envelope/content.h"
#include "signing/key_ring.h"

namespace hapax::envelope {

struct AttemptFacts {
  std::string_view key;                      // of signing::DeliveryKey, the same on every attempt
  Time at{};                                 // of this attempt
  std::uint32_t replay = 0;                  // how often the record was replayed; 0 = never
  const signing::KeyRing* keys = nullptr;    // nullptr: the endpoint wants no signature
  std::span<const Header> record_headers{};  // what was published with the record
};

// In this order: what the record's publisher gave it, what the content says of itself, then
// webhook-id, Idempotency-Key, webhook-timestamp, webhook-signature, Hapax-Replay.
//
// A field of the record is passed on (traceparent, tracestate and baggage among them) unless it is
// for the connection, tells who the sender is, or has a name that is ours
// (docs/reference/webhooks.md lists them). Errors are those of KeyRing::sign().
[[nodiscard]] Result<std::vector<HeaderField>> attempt_fields(const RequestContent& content,
                                                              const AttemptFacts& facts);

// Whether a field of a record never reaches an endpoint.
[[nodiscard]] bool is_withheld(std::string_view name, BodyShape shape);

}  // namespace hapax::envelope
