// The verdicts as lists of named fields: the one description from which JSON and RESP answers are
// made. An `Out` has add(key, value), time, bytes, pairs, object and list.
#pragma once

#include <string>
#include <variant>

#include <hapax/verdicts.h>

#include "wire/text_value.h"

namespace hapax::wire {

template <class Out>
void tell_hybrid(Out& out, HybridTime at) {
  out.add("at_ms", at.wall_ms);
  out.add("at_counter", at.counter);
  out.add("at_node", at.node);
}

template <class Out>
void tell_result(Out& out, const StoredResult& result) {
  out.add("status", result.status);
  out.bytes("result_headers", result.headers);
  out.bytes("body", result.body);
}

template <class Out>
void tell_attempt(Out& out, const PastAttempt& past) {
  out.add("attempt", past.attempt);
  out.add("redrives", past.redrives);
  out.time("handed_out_ms", past.handed_out);
  out.time("ended_ms", past.ended);
  out.add("ending", word(past.ending));
  out.add("owner", past.owner);
  out.add("reason", past.reason);
}

template <class Out>
void tell_lineage(Out& out, const Lineage& lineage) {
  out.add("stream", lineage.stream);
  out.add("sequence", lineage.sequence);
  if (!lineage.consumer.empty()) out.add("consumer", lineage.consumer);
  out.add("reason", lineage.reason);
  out.add("attempts", lineage.attempts);
  out.time("first_handed_out_ms", lineage.first_handed_out);
  out.time("last_handed_out_ms", lineage.last_handed_out);
  out.add("redrives", lineage.redrives);
  if (lineage.to) out.add("to", word(*lineage.to));
  out.list("history", lineage.history,
           [](Out& inner, const PastAttempt& past) { tell_attempt(inner, past); });
}

template <class Out>
void tell_record(Out& out, const Record& record) {
  out.add("sequence", record.sequence);
  out.time("time_ms", record.time);
  if (!record.id.empty()) out.bytes("id", record.id);
  if (!record.group.empty()) out.bytes("group", record.group);
  if (!record.headers.empty()) out.pairs("headers", record.headers);
  out.bytes("payload", record.payload);
  if (record.lineage) {
    out.object("lineage", [&](Out& inner) { tell_lineage(inner, *record.lineage); });
  }
}

template <class Out>
void tell_delivery(Out& out, const Delivery& delivery) {
  out.add("receipt", receipt_text(delivery.record.sequence, delivery.token));
  out.add("attempt", delivery.attempt);
  out.time("lease_until_ms", delivery.lease_until);
  if (delivery.gone) out.add("gone", true);
  tell_record(out, delivery.record);
}

template <class Out>
struct TellVerdict {
  Out& out;

  void operator()(const Appended& v) { out.add("sequence", v.sequence); }
  void operator()(const Duplicate& v) {
    out.add("sequence", v.sequence);
    out.time("first_seen_ms", v.first_seen);
    out.time("expires_at_ms", v.expires_at);
    if (v.forgotten_after != 0) out.add("forgotten_after", v.forgotten_after);
  }
  void operator()(const Opened& v) {
    out.add("producer_epoch", v.epoch);
    out.add("former_epoch", v.former);
    out.add("former_next", v.former_next);
    out.add("former_last", v.former_last);
  }
  void operator()(const Conflict& v) {
    out.add("stored_fingerprint", v.stored.hex());
    out.add("received_fingerprint", v.received.hex());
    out.time("first_seen_ms", v.first_seen);
  }
  void operator()(const Fenced& v) {
    out.add("current", v.current);
    out.add("received", v.received);
  }
  void operator()(const Gap& v) {
    out.add("expected", v.expected);
    out.add("received", v.received);
  }
  void operator()(const UnknownProducer& v) {
    out.add("producer_epoch", v.epoch);
    out.add("received", v.received);
  }
  void operator()(const TooOldToKnow& v) { out.time("horizon_ms", v.horizon); }
  void operator()(const ExpectationFailed& v) {
    out.add("actual", v.actual);
    out.bytes("actual_position", v.actual_position);
  }
  void operator()(const Claimed& v) {
    out.add("fence", v.fence);
    out.add("attempt", v.attempt);
    out.add("former", word(v.former));
    out.time("lease_until_ms", v.lease_until);
  }
  void operator()(const DuplicateClaim& v) {
    out.add("fence", v.fence);
    out.time("settled_at_ms", v.settled_at);
    out.time("expires_at_ms", v.expires_at);
    out.add("result_kept", v.result.has_value() || v.hidden);
    if (v.result) tell_result(out, *v.result);
  }
  void operator()(const InProgress& v) {
    out.add("owner", v.owner);
    out.time("lease_until_ms", v.lease_until);
    out.add("attempt", v.attempt);
  }
  void operator()(const UnknownOutcome& v) {
    out.add("owner", v.owner);
    out.add("reason", v.reason);
    out.time("since_ms", v.since);
  }
  void operator()(const Received& v) {
    out.list("records", v.deliveries,
             [](Out& inner, const Delivery& delivery) { tell_delivery(inner, delivery); });
  }
  void operator()(const Stale& v) {
    out.add("owner", v.owner);
    out.add("acked", v.acked);
  }
  void operator()(const Renewed& v) { out.time("lease_until_ms", v.lease_until); }
  void operator()(const Registered& v) {
    out.add("version", v.version);
    tell_hybrid(out, v.at);
  }
  void operator()(const Superseded& v) {
    out.add("version", v.version);
    tell_hybrid(out, v.at);
  }
  void operator()(const Held& v) {
    out.add("applied", v.applied);
    if (v.value) out.bytes("value", *v.value);
    out.add("version", v.version);
    out.time("expires_at_ms", v.expires_at);
    if (v.number) out.add("number", *v.number);
  }
  void operator()(const Began& v) {
    out.add("epoch", v.epoch);
    out.time("expires_at_ms", v.expires_at);
  }
  void operator()(const Refused& v) {
    out.add("code", code_of(v.error.code));
    out.add("error", hapax::word_of(v.error.code));
    out.add("detail", v.error.detail);
  }
  template <class Plain>
  void operator()(const Plain&) {}

  // "HX1001"
  static std::string code_of(Errc code) {
    return "HX" + std::to_string(static_cast<unsigned>(code));
  }
};

template <class Out>
void tell_verdict(Out& out, const Verdict& verdict) {
  out.add("verdict", hapax::word_of(verdict));
  std::visit(TellVerdict<Out>{out}, verdict);
}

}  // namespace hapax::wire
