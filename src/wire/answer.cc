#include "wire/answer.h"

#include <variant>

#include "digest/base64.h"
#include "wire/json_text.h"
#include "wire/op_fields.h"
#include "wire/text_value.h"
#include "wire/verdict_fields.h"

namespace hapax::wire {

namespace {

class Fields {
 public:
  template <class Value>
  Fields& add(std::string_view key, const Value& value) {
    object_.add(key, value);
    return *this;
  }
  template <class Tag>
  Fields& add(std::string_view key, Number<Tag> number) {
    return add(key, number.value);
  }
  Fields& raw(std::string_view key, std::string_view json) {
    object_.raw(key, json);
    return *this;
  }
  Fields& time(std::string_view key, Time time) {
    return time == Time::max() ? raw(key, "null") : add(key, to_ms(time));
  }
  Fields& bytes(std::string_view key, std::string_view bytes) {
    if (is_utf8(bytes)) return add(key, bytes);
    return add(std::string(key) + "_base64", digest::encode_base64(bytes));
  }
  template <class Enum>
  Fields& word(std::string_view key, Enum value) {
    return add(key, wire::word(value));
  }
  Fields& window(std::string_view key, Window window) {
    return window.is_forever() ? add(key, kForever) : add(key, window.raw());
  }
  template <class List, class Tell>
  Fields& list(std::string_view key, const List& items, const Tell& tell) {
    JsonArray array;
    for (const auto& item : items) array.add(object_of([&](Fields& out) { tell(out, item); }));
    return raw(key, array.text());
  }
  template <class Tell>
  Fields& object(std::string_view key, const Tell& tell) {
    return raw(key, object_of(tell));
  }
  Fields& pairs(std::string_view key,
                const std::vector<std::pair<std::string, std::string>>& pairs) {
    JsonArray array;
    for (const auto& [name, value] : pairs) {
      array.add("[" + json_text(name) + "," + json_text(value) + "]");
    }
    return raw(key, array.text());
  }
  [[nodiscard]] std::string text() const { return object_.text(); }

 private:
  template <class Tell>
  static std::string object_of(const Tell& tell) {
    Fields out;
    tell(out);
    return out.text();
  }

  JsonObject object_;
};

void tell_consumer(Fields& out, const ConsumerStats& stats) {
  out.add("consumer", stats.consumer).add("floor", stats.floor).add("next", stats.next);
  out.add("in_flight", stats.in_flight).add("waiting", stats.waiting);
  out.add("dead_lettered", stats.dead_lettered);
}

}  // namespace

std::string json_of(const Verdict& verdict) {
  Fields out;
  tell_verdict(out, verdict);
  return out.text();
}

std::string json_of(const Answer& answer) {
  Fields out;
  out.add("committed", answer.committed).add("repeated", answer.repeated);
  out.time("time_ms", answer.time);
  const auto tell = [](Fields& inner, const Verdict& verdict) { tell_verdict(inner, verdict); };
  return out.list("verdicts", answer.verdicts, tell).text();
}

std::string json_of(const Record& record) {
  Fields out;
  tell_record(out, record);
  return out.text();
}

std::string json_of(const Records& records) {
  Fields out;
  out.add("first", records.first).add("last", records.last);
  const auto tell = [](Fields& inner, const Record& record) { tell_record(inner, record); };
  return out.list("records", records.records, tell).text();
}

std::string json_of(const ConsumerStats& stats) {
  Fields out;
  tell_consumer(out, stats);
  return out.text();
}

std::string json_of(const StreamStats& stats) {
  const StreamSettings& settings = stats.settings;
  Fields own;
  own.window("window_s", settings.window).word("window_start", settings.window_start);
  own.word("id_scope", settings.id_scope).add("content_ids", settings.content_ids);
  own.add("track_groups", settings.track_groups);
  if (settings.retention.age) own.add("retention_age_ms", settings.retention.age->count());
  if (settings.retention.bytes) own.add("retention_bytes", *settings.retention.bytes);
  if (settings.retention.count) own.add("retention_count", *settings.retention.count);
  own.add("retention_acked_by_all", settings.retention.acked_by_all);
  own.add("record_bytes_max", settings.record_bytes_max).add("quota_bytes", settings.quota_bytes);
  own.add("producer_memory", settings.producer_memory);
  own.add("producers_max", settings.producers_max);

  Fields out;
  out.add("stream", stats.stream).add("first", stats.first).add("last", stats.last);
  out.add("bytes", stats.bytes).add("ids", stats.ids).add("producers", stats.producers);
  out.time("created_at_ms", stats.created_at).time("horizon_ms", stats.horizon);
  out.raw("settings", own.text());
  return out.list("consumers", stats.consumers, tell_consumer).text();
}

std::string json_of(const Statistics& s) {
  Fields out;
  out.add("streams", s.streams).add("ids", s.ids).add("claims_open", s.claims_open);
  out.add("claims_unknown", s.claims_unknown).add("claims_settled", s.claims_settled);
  out.add("registers", s.registers).add("registers_expiring", s.registers_expiring);
  out.add("positions", s.positions);
  out.add("transactions_open", s.transactions_open).add("fenced", s.fenced);
  out.add("gaps", s.gaps).add("records_lost", s.records_lost).add("results_lost", s.results_lost);
  out.add("memory_bytes", s.memory_bytes).add("journal_bytes", s.journal_bytes);
  out.add("segments", s.segments).add("commits", s.commits).add("batches", s.batches);
  out.add("snapshots", s.snapshots).time("log_time_ms", s.log_time);
  out.add("writes_refused", s.writes_refused);
  return out.add("clock_jump_pending", s.clock_jump_pending).text();
}

std::string json_of(const IdStatus& status) {
  Fields out;
  out.add("sequence", status.sequence).add("fingerprint", status.fingerprint.hex());
  out.time("first_seen_ms", status.first_seen).time("expires_at_ms", status.expires_at);
  return out.text();
}

std::string json_of(const ProducerStatus& status) {
  Fields out;
  out.add("producer_epoch", status.epoch).add("next", status.next);
  return out.add("retired", status.retired).text();
}

std::string json_of(const RegisterValue& value) {
  Fields out;
  out.bytes("value", value.value).add("version", value.version);
  tell_hybrid(out, value.at);
  out.time("expires_at_ms", value.expires_at);
  return out.text();
}

std::string json_of(const RegisterPage& page) {
  Fields out;
  out.list("registers", page.names,
           [](Fields& inner, const std::string& name) { inner.bytes("name", name); });
  return out.add("next", std::to_string(page.next)).text();  // 64 bits: too many for some readers
}

std::string json_of(const Position& position) {
  Fields out;
  out.bytes("position", position.value).add("epoch", position.epoch);
  return out.text();
}

std::string_view word_of(ClaimState state) {
  switch (state) {
    case ClaimState::kProcessing:
      return "processing";
    case ClaimState::kCompleted:
      return "completed";
    case ClaimState::kFailed:
      return "failed";
    case ClaimState::kUnknown:
      return "unknown";
  }
  return "";
}

std::string json_of(const ClaimStatus& status, Bodies bodies) {
  Fields out;
  out.add("state", word_of(status.state)).add("fence", status.fence);
  out.add("attempts", status.attempts).add("fingerprint", status.fingerprint.hex());
  if (!status.owner.empty()) out.add("owner", status.owner);
  if (!status.reason.empty()) out.add("reason", status.reason);
  out.time("since_ms", status.since).time("until_ms", status.until);
  out.add("result_kept", status.result.has_value());
  if (status.result && bodies == Bodies::kShown) tell_result(out, *status.result);
  if (status.result && bodies == Bodies::kHidden) {
    out.add("status", status.result->status).add("body_bytes", status.result->body.size());
  }
  return out.text();
}

}  // namespace hapax::wire
