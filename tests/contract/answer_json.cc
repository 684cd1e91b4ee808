#include "answer_json.h"

#include <algorithm>
#include <charconv>

#include "digest/base64.h"
#include "wire/op_fields.h"
#include "wire/text_value.h"

namespace hapax::contract {

namespace {

// Reads members by name; what is missing stays as it was.
class Members {
 public:
  explicit Members(const Json& json) : json_(json) {}

  [[nodiscard]] bool has(std::string_view name) const { return json_.find(name) != nullptr; }
  [[nodiscard]] const Json& at(std::string_view name) const {
    static const Json kNothing;
    const Json* found = json_.find(name);
    return found == nullptr ? kNothing : *found;
  }
  template <class Integer>
  void read(std::string_view name, Integer& number) const {
    if (const auto* whole = at(name).get<std::int64_t>()) number = static_cast<Integer>(*whole);
    if (const auto* large = at(name).get<std::uint64_t>()) number = static_cast<Integer>(*large);
  }
  template <class Tag>
  void read(std::string_view name, Number<Tag>& number) const {
    read(name, number.value);
  }
  void read(std::string_view name, bool& flag) const {
    if (const bool* found = at(name).get<bool>()) flag = *found;
  }
  void read(std::string_view name, std::string& text) const {
    if (const auto* found = at(name).get<std::string>()) text = *found;
    if (const auto* coded = at(std::string(name) + "_base64").get<std::string>()) {
      text = digest::decode_base64(*coded).value();
    }
  }
  void read(std::string_view name, Time& time) const {
    std::int64_t ms = 0;
    read(name, ms);
    time = has(name) && at(name).get<std::int64_t>() == nullptr ? Time::max() : time_from_ms(ms);
  }
  void read(std::string_view name, Window& window) const {
    if (at(name).get<std::string>() != nullptr) window = Window::forever();
    if (const auto* seconds = at(name).get<std::int64_t>()) {
      window = Window{std::chrono::seconds{*seconds}};
    }
  }
  void read(std::string_view name, Fingerprint& fingerprint) const {
    std::string hex;
    read(name, hex);
    if (hex.size() != 32) return;
    std::from_chars(hex.data(), hex.data() + 16, fingerprint.high, 16);
    std::from_chars(hex.data() + 16, hex.data() + 32, fingerprint.low, 16);
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void word(std::string_view name, Enum& value) const {
    std::string text;
    read(name, text);
    static_cast<void>(wire::from_text(text, value));
  }
  template <class Value>
  void some(std::string_view name, std::optional<Value>& value) const {
    if (has(name)) read(name, value.emplace());
  }
  template <class Read>
  void each(std::string_view name, const Read& read_one) const {
    if (const auto* list = at(name).get<Json::Array>()) {
      for (const Json& one : *list) read_one(one);
    }
  }

 private:
  const Json& json_;
};

HybridTime hybrid_from(const Members& in) {
  HybridTime at;
  in.read("at_ms", at.wall_ms);
  in.read("at_counter", at.counter);
  in.read("at_node", at.node);
  return at;
}

StoredResult result_from(const Members& in) {
  StoredResult result;
  in.read("status", result.status);
  in.read("result_headers", result.headers);
  in.read("body", result.body);
  return result;
}

PastAttempt attempt_from(const Json& json) {
  const Members in(json);
  PastAttempt past;
  in.read("attempt", past.attempt);
  in.read("redrives", past.redrives);
  in.read("handed_out_ms", past.handed_out);
  in.read("ended_ms", past.ended);
  in.word("ending", past.ending);
  in.read("owner", past.owner);
  in.read("reason", past.reason);
  return past;
}

Lineage lineage_from(const Json& json) {
  const Members in(json);
  Lineage lineage;
  in.read("stream", lineage.stream);
  in.read("sequence", lineage.sequence);
  in.read("consumer", lineage.consumer);
  in.read("reason", lineage.reason);
  in.read("attempts", lineage.attempts);
  in.read("first_handed_out_ms", lineage.first_handed_out);
  in.read("last_handed_out_ms", lineage.last_handed_out);
  in.read("redrives", lineage.redrives);
  if (in.has("to")) in.word("to", lineage.to.emplace());
  in.each("history", [&](const Json& one) { lineage.history.push_back(attempt_from(one)); });
  return lineage;
}

Record record_from(const Json& json) {
  const Members in(json);
  Record record;
  in.read("sequence", record.sequence);
  in.read("time_ms", record.time);
  in.read("id", record.id);
  in.read("group", record.group);
  in.read("payload", record.payload);
  std::vector<std::string> words;  // JSON has pairs of them, RESP all in a row.
  const auto take = [&](const Json& word) { words.push_back(*word.get<std::string>()); };
  in.each("headers", [&](const Json& one) {
    const auto* pair = one.get<Json::Array>();
    if (pair == nullptr) return take(one);
    std::for_each(pair->begin(), pair->end(), take);
  });
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    record.headers.emplace_back(words[i], words[i + 1]);
  }
  if (in.has("lineage")) record.lineage = lineage_from(in.at("lineage"));
  return record;
}

Delivery delivery_from(const Json& json) {
  const Members in(json);
  Delivery delivery;
  std::string receipt;
  in.read("receipt", receipt);
  Receipt read;
  static_cast<void>(wire::from_text(receipt, wire::ReceiptText{read}));
  delivery.token = read.token;
  in.read("attempt", delivery.attempt);
  in.read("lease_until_ms", delivery.lease_until);
  delivery.record = record_from(json);
  delivery.gone = in.has("gone");
  return delivery;
}

// --- verdicts: the word, and where two have the same word, what only one of them has

Verdict fresh_from(const Members& in) {
  if (!in.has("fence")) {
    Appended appended;
    in.read("sequence", appended.sequence);
    return appended;
  }
  Claimed claimed;
  in.read("fence", claimed.fence);
  in.read("attempt", claimed.attempt);
  in.word("former", claimed.former);
  in.read("lease_until_ms", claimed.lease_until);
  return claimed;
}

Verdict duplicate_from(const Members& in) {
  if (!in.has("settled_at_ms")) {
    Duplicate duplicate;
    in.read("sequence", duplicate.sequence);
    in.read("first_seen_ms", duplicate.first_seen);
    in.read("expires_at_ms", duplicate.expires_at);
    in.read("forgotten_after", duplicate.forgotten_after);
    return duplicate;
  }
  DuplicateClaim claim;
  bool kept = false;
  in.read("result_kept", kept);
  if (kept) claim.result = result_from(in);
  in.read("fence", claim.fence);
  in.read("settled_at_ms", claim.settled_at);
  in.read("expires_at_ms", claim.expires_at);
  return claim;
}

Verdict held_from(const Members& in) {
  Held held;
  in.read("applied", held.applied);
  if (in.has("value") || in.has("value_base64")) in.read("value", held.value.emplace());
  in.read("version", held.version);
  in.read("expires_at_ms", held.expires_at);
  in.some("number", held.number);
  return held;
}

Verdict done_from(const Members& in) {
  if (in.has("applied")) return held_from(in);
  if (in.has("producer_epoch")) {
    Opened opened;
    in.read("producer_epoch", opened.epoch);
    in.read("former_epoch", opened.former);
    in.read("former_next", opened.former_next);
    in.read("former_last", opened.former_last);
    return opened;
  }
  if (in.has("version")) {
    Registered registered{{}, hybrid_from(in)};
    in.read("version", registered.version);
    return registered;
  }
  if (in.has("epoch")) {
    Began began;
    in.read("epoch", began.epoch);
    in.read("expires_at_ms", began.expires_at);
    return began;
  }
  if (!in.has("lease_until_ms")) return Done{};
  Renewed renewed;
  in.read("lease_until_ms", renewed.lease_until);
  return renewed;
}

Verdict refused_from(const Members& in) {
  std::string code;
  Refused refused{{Errc::kInvalidArgument, ""}};
  in.read("code", code);
  in.read("detail", refused.error.detail);
  std::uint16_t number = 0;
  std::from_chars(code.data() + 2, code.data() + code.size(), number);
  refused.error.code = static_cast<Errc>(number);
  return refused;
}

Verdict conflict_from(const Members& in) {
  Conflict conflict;
  in.read("stored_fingerprint", conflict.stored);
  in.read("received_fingerprint", conflict.received);
  in.read("first_seen_ms", conflict.first_seen);
  return conflict;
}
Verdict fenced_from(const Members& in) {
  Fenced fenced;
  in.read("current", fenced.current);
  in.read("received", fenced.received);
  return fenced;
}
Verdict gap_from(const Members& in) {
  Gap gap;
  in.read("expected", gap.expected);
  in.read("received", gap.received);
  return gap;
}
Verdict unknown_producer_from(const Members& in) {
  UnknownProducer unknown;
  in.read("producer_epoch", unknown.epoch);
  in.read("received", unknown.received);
  return unknown;
}
Verdict too_old_from(const Members& in) {
  TooOldToKnow old;
  in.read("horizon_ms", old.horizon);
  return old;
}
Verdict expectation_from(const Members& in) {
  ExpectationFailed failed;
  in.read("actual", failed.actual);
  in.read("actual_position", failed.actual_position);
  return failed;
}
Verdict in_progress_from(const Members& in) {
  InProgress busy;
  in.read("owner", busy.owner);
  in.read("lease_until_ms", busy.lease_until);
  in.read("attempt", busy.attempt);
  return busy;
}
Verdict unknown_from(const Members& in) {
  UnknownOutcome unknown;
  in.read("owner", unknown.owner);
  in.read("reason", unknown.reason);
  in.read("since_ms", unknown.since);
  return unknown;
}
Verdict received_from(const Members& in) {
  Received received;
  in.each("records", [&](const Json& one) { received.deliveries.push_back(delivery_from(one)); });
  return received;
}
Verdict stale_from(const Members& in) {
  Stale stale;
  in.read("owner", stale.owner);
  in.read("acked", stale.acked);
  return stale;
}
Verdict superseded_from(const Members& in) {
  Superseded superseded{{}, hybrid_from(in)};
  in.read("version", superseded.version);
  return superseded;
}
Verdict staged_from(const Members&) { return Staged{}; }
Verdict not_applied_from(const Members&) { return NotApplied{}; }

}  // namespace

Verdict verdict_from(const Json& json) {
  const Members in(json);
  std::string word;
  in.read("verdict", word);
  const std::pair<std::string_view, Verdict (*)(const Members&)> readers[] = {
      {"fresh", fresh_from},
      {"duplicate", duplicate_from},
      {"done", done_from},
      {"unchanged", held_from},
      {"refused", refused_from},
      {"conflict", conflict_from},
      {"fenced", fenced_from},
      {"gap", gap_from},
      {"unknown_producer", unknown_producer_from},
      {"too_old_to_know", too_old_from},
      {"expectation_failed", expectation_from},
      {"in_progress", in_progress_from},
      {"unknown", unknown_from},
      {"records", received_from},
      {"stale", stale_from},
      {"superseded", superseded_from},
      {"staged", staged_from},
      {"not_applied", not_applied_from},
  };
  for (const auto& [known, read] : readers) {
    if (known == word) return read(in);
  }
  return Refused{{Errc::kInvalidArgument, "the tests do not know the verdict " + word}};
}

namespace {

ConsumerStats consumer_from(const Json& json) {
  const Members in(json);
  ConsumerStats stats;
  in.read("consumer", stats.consumer);
  in.read("floor", stats.floor);
  in.read("next", stats.next);
  in.read("in_flight", stats.in_flight);
  in.read("waiting", stats.waiting);
  in.read("dead_lettered", stats.dead_lettered);
  return stats;
}

StreamSettings settings_from(const Json& json) {
  const Members in(json);
  StreamSettings settings;
  in.read("window_s", settings.window);
  in.word("window_start", settings.window_start);
  in.word("id_scope", settings.id_scope);
  in.read("content_ids", settings.content_ids);
  in.read("track_groups", settings.track_groups);
  if (in.has("retention_age_ms")) {
    std::int64_t ms = 0;
    in.read("retention_age_ms", ms);
    settings.retention.age = Duration{ms};
  }
  in.some("retention_bytes", settings.retention.bytes);
  in.some("retention_count", settings.retention.count);
  in.read("retention_acked_by_all", settings.retention.acked_by_all);
  in.read("record_bytes_max", settings.record_bytes_max);
  in.read("quota_bytes", settings.quota_bytes);
  in.read("producer_memory", settings.producer_memory);
  in.read("producers_max", settings.producers_max);
  return settings;
}

}  // namespace

Answer answer_from(const Json& json) {
  const Members in(json);
  Answer answer;
  in.read("committed", answer.committed);
  in.read("repeated", answer.repeated);
  in.read("time_ms", answer.time);
  in.each("verdicts", [&](const Json& one) { answer.verdicts.push_back(verdict_from(one)); });
  return answer;
}

Answer one_answer_from(const Json& json) {
  const Members in(json);
  if (in.has("verdicts")) return answer_from(json);
  Answer answer;
  in.read("time_ms", answer.time);
  answer.verdicts.push_back(verdict_from(json));
  answer.committed = holds(answer.verdicts.front());
  return answer;
}

Records records_from(const Json& json) {
  const Members in(json);
  Records records;
  in.read("first", records.first);
  in.read("last", records.last);
  in.each("records", [&](const Json& one) { records.records.push_back(record_from(one)); });
  return records;
}

IdStatus id_from(const Json& json) {
  const Members in(json);
  IdStatus status;
  in.read("sequence", status.sequence);
  in.read("fingerprint", status.fingerprint);
  in.read("first_seen_ms", status.first_seen);
  in.read("expires_at_ms", status.expires_at);
  return status;
}

ClaimStatus claim_from(const Json& json) {
  const Members in(json);
  ClaimStatus status;
  std::string state;
  bool kept = false;
  in.read("state", state);
  for (const ClaimState one : {ClaimState::kProcessing, ClaimState::kCompleted, ClaimState::kFailed,
                               ClaimState::kUnknown}) {
    const std::string_view words[] = {"processing", "completed", "failed", "unknown"};
    if (state == words[static_cast<std::size_t>(one)]) status.state = one;
  }
  in.read("fence", status.fence);
  in.read("attempts", status.attempts);
  in.read("fingerprint", status.fingerprint);
  in.read("owner", status.owner);
  in.read("reason", status.reason);
  in.read("since_ms", status.since);
  in.read("until_ms", status.until);
  in.read("result_kept", kept);
  if (kept) status.result = result_from(in);
  return status;
}

RegisterValue register_from(const Json& json) {
  const Members in(json);
  RegisterValue value;
  in.read("value", value.value);
  in.read("version", value.version);
  value.at = hybrid_from(in);
  in.read("expires_at_ms", value.expires_at);
  return value;
}

RegisterPage register_page_from(const Json& json) {
  const Members in(json);
  RegisterPage page;
  in.each("registers",
          [&](const Json& one) { Members(one).read("name", page.names.emplace_back()); });
  std::string next;
  in.read("next", next);
  std::from_chars(next.data(), next.data() + next.size(), page.next);
  return page;
}

Position position_from(const Json& json) {
  const Members in(json);
  Position position;
  in.read("position", position.value);
  in.read("epoch", position.epoch);
  return position;
}

ProducerStatus producer_from(const Json& json) {
  const Members in(json);
  ProducerStatus status;
  in.read("producer_epoch", status.epoch);
  in.read("next", status.next);
  in.read("retired", status.retired);
  return status;
}

StreamStats stream_from(const Json& json) {
  const Members in(json);
  StreamStats stats;
  in.read("stream", stats.stream);
  stats.settings = settings_from(in.at("settings"));
  in.read("first", stats.first);
  in.read("last", stats.last);
  in.read("bytes", stats.bytes);
  in.read("ids", stats.ids);
  in.read("producers", stats.producers);
  in.read("created_at_ms", stats.created_at);
  in.read("horizon_ms", stats.horizon);
  in.each("consumers", [&](const Json& one) { stats.consumers.push_back(consumer_from(one)); });
  return stats;
}

Statistics statistics_from(const Json& json) {
  const Members in(json);
  Statistics s;
  in.read("streams", s.streams);
  in.read("ids", s.ids);
  in.read("claims_open", s.claims_open);
  in.read("claims_unknown", s.claims_unknown);
  in.read("claims_settled", s.claims_settled);
  in.read("registers", s.registers);
  in.read("registers_expiring", s.registers_expiring);
  in.read("positions", s.positions);
  in.read("transactions_open", s.transactions_open);
  in.read("fenced", s.fenced);
  in.read("gaps", s.gaps);
  in.read("records_lost", s.records_lost);
  in.read("results_lost", s.results_lost);
  in.read("memory_bytes", s.memory_bytes);
  in.read("journal_bytes", s.journal_bytes);
  in.read("segments", s.segments);
  in.read("commits", s.commits);
  in.read("batches", s.batches);
  in.read("snapshots", s.snapshots);
  in.read("log_time_ms", s.log_time);
  in.read("writes_refused", s.writes_refused);
  in.read("clock_jump_pending", s.clock_jump_pending);
  std::int64_t lag_ms = 0;
  in.read("clock_lag_ms", lag_ms);
  s.clock_lag = Duration{lag_ms};
  return s;
}

std::vector<std::string> streams_from(const Json& json) {
  std::vector<std::string> names;
  Members(json).each("streams", [&](const Json& one) { names.push_back(*one.get<std::string>()); });
  return names;
}

Error error_from(const Json& json) {
  const Members in(json);
  if (in.has("code")) return std::get<Refused>(refused_from(in)).error;
  int status = 400;  // HTTP itself refused it, before an operation was understood.
  Error error{Errc::kInvalidArgument, ""};
  in.read("status", status);
  in.read("detail", error.detail);
  if (status == 413) error.code = Errc::kLimitExceeded;
  if (status == 404) error.code = Errc::kNotFound;
  return error;
}

}  // namespace hapax::contract
