// Whole answers and what reads find, as lists of named fields: the one description from which JSON
// and RESP answers are made. For `Out` see verdict_fields.h.
#pragma once

#include <string>
#include <string_view>

#include <hapax/store.h>

#include "wire/answer.h"
#include "wire/op_fields.h"
#include "wire/text_value.h"
#include "wire/verdict_fields.h"

namespace hapax::wire {

template <class Out>
void tell(Out& out, const Answer& answer) {
  out.add("committed", answer.committed);
  out.add("repeated", answer.repeated);
  out.time("time_ms", answer.time);
  out.list("verdicts", answer.verdicts,
           [](Out& inner, const Verdict& verdict) { tell_verdict(inner, verdict); });
}

template <class Out>
void tell(Out& out, const Records& records) {
  out.add("first", records.first);
  out.add("last", records.last);
  out.list("records", records.records,
           [](Out& inner, const Record& record) { tell_record(inner, record); });
}

template <class Out>
void tell(Out& out, const ConsumerStats& stats) {
  out.add("consumer", stats.consumer);
  out.add("floor", stats.floor);
  out.add("next", stats.next);
  out.add("in_flight", stats.in_flight);
  out.add("waiting", stats.waiting);
  out.add("dead_lettered", stats.dead_lettered);
}

template <class Out>
void tell(Out& out, const StreamSettings& settings) {
  if (settings.window.is_forever()) {
    out.add("window_s", kForever);
  } else {
    out.add("window_s", settings.window.raw());
  }
  out.add("window_start", word(settings.window_start));
  out.add("id_scope", word(settings.id_scope));
  out.add("content_ids", settings.content_ids);
  out.add("track_groups", settings.track_groups);
  if (settings.retention.age) out.add("retention_age_ms", settings.retention.age->count());
  if (settings.retention.bytes) out.add("retention_bytes", *settings.retention.bytes);
  if (settings.retention.count) out.add("retention_count", *settings.retention.count);
  out.add("retention_acked_by_all", settings.retention.acked_by_all);
  out.add("record_bytes_max", settings.record_bytes_max);
  out.add("quota_bytes", settings.quota_bytes);
  out.add("producer_memory", settings.producer_memory);
  out.add("producers_max", settings.producers_max);
}

template <class Out>
void tell(Out& out, const StreamStats& stats) {
  out.add("stream", stats.stream);
  out.add("first", stats.first);
  out.add("last", stats.last);
  out.add("bytes", stats.bytes);
  out.add("ids", stats.ids);
  out.add("producers", stats.producers);
  out.time("created_at_ms", stats.created_at);
  out.time("horizon_ms", stats.horizon);
  out.object("settings", [&](Out& inner) { tell(inner, stats.settings); });
  out.list("consumers", stats.consumers,
           [](Out& inner, const ConsumerStats& one) { tell(inner, one); });
}

template <class Out>
void tell(Out& out, const Statistics& s) {
  out.add("streams", s.streams);
  out.add("ids", s.ids);
  out.add("claims_open", s.claims_open);
  out.add("claims_unknown", s.claims_unknown);
  out.add("claims_settled", s.claims_settled);
  out.add("registers", s.registers);
  out.add("registers_expiring", s.registers_expiring);
  out.add("positions", s.positions);
  out.add("transactions_open", s.transactions_open);
  out.add("fenced", s.fenced);
  out.add("gaps", s.gaps);
  out.add("records_lost", s.records_lost);
  out.add("results_lost", s.results_lost);
  out.add("memory_bytes", s.memory_bytes);
  out.add("journal_bytes", s.journal_bytes);
  out.add("segments", s.segments);
  out.add("commits", s.commits);
  out.add("batches", s.batches);
  out.add("snapshots", s.snapshots);
  out.time("log_time_ms", s.log_time);
  out.add("writes_refused", s.writes_refused);
  out.add("clock_jump_pending", s.clock_jump_pending);
  out.add("clock_lag_ms", s.clock_lag.count());
}

template <class Out>
void tell(Out& out, const IdStatus& status) {
  out.add("sequence", status.sequence);
  out.add("fingerprint", status.fingerprint.hex());
  out.time("first_seen_ms", status.first_seen);
  out.time("expires_at_ms", status.expires_at);
}

template <class Out>
void tell(Out& out, const ProducerStatus& status) {
  out.add("producer_epoch", status.epoch);
  out.add("next", status.next);
  out.add("retired", status.retired);
}

template <class Out>
void tell(Out& out, const RegisterValue& value) {
  out.bytes("value", value.value);
  out.add("version", value.version);
  tell_hybrid(out, value.at);
  out.time("expires_at_ms", value.expires_at);
}

template <class Out>
void tell(Out& out, const RegisterPage& page) {
  out.list("registers", page.names,
           [](Out& inner, const std::string& name) { inner.bytes("name", name); });
  out.add("next", std::to_string(page.next));  // 64 bits: too many for some readers of JSON
}

template <class Out>
void tell(Out& out, const Position& position) {
  out.bytes("position", position.value);
  out.add("epoch", position.epoch);
}

template <class Out>
void tell(Out& out, const ClaimStatus& status, Bodies bodies) {
  out.add("state", word_of(status.state));
  out.add("fence", status.fence);
  out.add("attempts", status.attempts);
  out.add("fingerprint", status.fingerprint.hex());
  if (!status.owner.empty()) out.add("owner", status.owner);
  if (!status.reason.empty()) out.add("reason", status.reason);
  out.time("since_ms", status.since);
  out.time("until_ms", status.until);
  out.add("result_kept", status.result.has_value());
  if (status.result && bodies == Bodies::kShown) tell_result(out, *status.result);
  if (status.result && bodies == Bodies::kHidden) {
    out.add("status", status.result->status);
    out.add("body_bytes", status.result->body.size());
  }
}

}  // namespace hapax::wire
