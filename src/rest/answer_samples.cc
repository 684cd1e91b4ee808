#include "rest/answer_samples.h"

#include <type_traits>
#include <utility>
#include <variant>

#include <hapax/store.h>

#include "wire/answer.h"

namespace hapax::rest {

namespace {

const std::string kBinary = "\xff";

Record full_record() {
  Record record{Sequence{1}, Time{}, "id", "group", {{"name", "value"}}, "payload", Lineage{}};
  record.lineage->consumer = "consumer";
  record.lineage->history.emplace_back();
  record.lineage->to = RedriveTo::kConsumer;
  return record;
}
Record binary_record() {
  Record record{};
  record.id = record.group = record.payload = kBinary;
  return record;
}
Record redriven_record() {  // By an older version: its lineage names no consumer.
  Record record{};
  record.lineage.emplace();
  return record;
}

std::vector<Record> all_records() {
  return {full_record(), binary_record(), redriven_record(), Record{}};
}

Received all_deliveries() {
  Received received;
  for (Record& record : all_records()) {
    received.deliveries.push_back({Token{}, 1, Time{}, std::move(record)});
  }
  received.deliveries.push_back({.token = {}, .lease_until = {}, .record = {}, .gone = true});
  return received;
}

StreamStats full_stream() {
  StreamStats stats;
  stats.settings.retention.age = Duration{1};
  stats.settings.retention.bytes = 1;
  stats.settings.retention.count = 1;
  stats.settings.window = Window::forever();
  stats.consumers.emplace_back();
  return stats;
}

ClaimStatus full_claim(const std::string& bytes) {
  ClaimStatus status;
  status.owner = "owner";
  status.reason = "reason";
  status.result = StoredResult{200, bytes, bytes};
  return status;
}

ClaimStatus lasting_claim() {
  ClaimStatus status;
  status.until = Time::max();
  return status;
}

Verdict with_result(const std::string& bytes) {
  DuplicateClaim claim;
  claim.result = StoredResult{200, bytes, bytes};
  claim.expires_at = Time::max();
  return claim;
}

IdStatus lasting_id() {
  IdStatus status;
  status.expires_at = Time::max();
  return status;
}

// Every alternative as it is by default; a refusal has some code.
template <std::size_t... Index>
std::vector<std::vector<Verdict>> plain_verdicts(std::index_sequence<Index...>) {
  const auto plain = []<class Kind>(std::type_identity<Kind>) -> Verdict {
    if constexpr (std::is_same_v<Kind, Refused>) {
      return Refused{{Errc::kNotFound, ""}};
    } else {
      return Kind{};
    }
  };
  return {{plain(std::type_identity<std::variant_alternative_t<Index, Verdict>>{})}...};
}

}  // namespace

std::vector<std::vector<Verdict>> verdict_samples() {
  std::vector<std::vector<Verdict>> samples =
      plain_verdicts(std::make_index_sequence<std::variant_size_v<Verdict>>{});
  const auto add = [&](const Verdict& full) { samples[full.index()].push_back(full); };
  Duplicate by_producer;
  by_producer.expires_at = Time::max();
  by_producer.forgotten_after = 1;
  add(by_producer);
  ExpectationFailed binary_position;
  binary_position.actual_position = kBinary;
  add(binary_position);
  add(with_result("text"));
  add(with_result(kBinary));
  add(all_deliveries());
  for (const std::string& value : {std::string("text"), kBinary}) {
    add(Held{.applied = true, .value = value, .version = {}, .expires_at = Time{}, .number = 0});
  }
  return samples;
}

std::vector<Samples> answer_samples() {
  using wire::Bodies;
  using wire::json_of;
  const RegisterValue binary_register{kBinary, {}, {}, Time{}};
  const Position binary_position{kBinary, {}};
  return {
      {"Health", {R"({"status":"live"})", R"({"status":"ready"})"}},
      {"Streams", {R"({"streams":["orders"]})"}},
      {"Stream", {json_of(full_stream()), json_of(StreamStats{})}},
      {"Horizon", {R"({"stream":"orders","horizon_ms":0})"}},
      {"Id", {json_of(IdStatus{}), json_of(lasting_id())}},
      {"Producer", {json_of(ProducerStatus{})}},
      {"Consumer", {json_of(ConsumerStats{})}},
      {"Consumers", {R"({"consumers":[)" + json_of(ConsumerStats{}) + "]}"}},
      {"Claim",
       {json_of(full_claim("text"), Bodies::kShown), json_of(full_claim(kBinary), Bodies::kShown),
        json_of(full_claim("text"), Bodies::kHidden), json_of(ClaimStatus{}, Bodies::kShown),
        json_of(lasting_claim(), Bodies::kShown)}},
      {"Register", {json_of(RegisterValue{}), json_of(binary_register)}},
      {"Registers", {json_of(RegisterPage{{"text"}, 0}), json_of(RegisterPage{{kBinary}, 0})}},
      {"Position", {json_of(Position{}), json_of(binary_position)}},
      {"Statistics",
       {json_of(Statistics{}), R"({"streams":0,"ids":0,"producers":0,"consumers":0,"bytes":0})"}},
      {"Records", {json_of(Records{all_records(), {}, {}}), json_of(Records{})}},
      {"DedupStats",
       {R"({"queue_name":"q","total_keys":0,"hit_rate_24h":0.1,"duplicate_jobs_blocked":0,)"
        R"("storage_size_mb":0.1,"ttl_distribution":{"0-1h":0,"1-6h":0,"6-24h":0,"24h+":0}})",
        R"({"queue_name":"q","total_keys":0,"hit_rate_24h":0.1,"duplicate_jobs_blocked":0,)"
        R"("storage_size_mb":0.1,"ttl_distribution":{"0-1h":0,"1-6h":0,"6-24h":0}})"}},
      {"DedupKey",
       {R"({"key":"k","status":"completed","processed_at":"2025-09-14T19:41:47Z",)"
        R"("worker_id":"w","attempt_count":1,"metadata":{}})",
        R"({"key":"k","status":"not_seen","processed_at":null,"worker_id":null,)"
        R"("attempt_count":0,"metadata":{}})"}},
      {"DedupDeleted", {R"({"key":"k","deleted":true})"}},
      {"Secret", {R"({"name":"ERP","changed_ms":0})"}},
      {"Secrets", {R"({"secrets":[{"name":"ERP","changed_ms":0}]})"}},
      {"SecretRemoved", {R"({"name":"ERP","removed":true})"}},
      {"OutboxStats",
       {R"({"pending":1,"published":0,"failed":0,"oldest_pending_at":"2025-09-14T19:41:47Z",)"
        R"("lag_seconds":0,"outboxes":[{"workflow":"w","pending":1,"published":0,"failed":0,)"
        R"("oldest_pending_at":"2025-09-14T19:41:47Z","asked_at":"2025-09-14T19:41:47Z",)"
        R"("error":"e"},{"workflow":"w","pending":1,"published":0,"failed":0,)"
        R"("oldest_pending_at":null,"asked_at":null}]})",
        R"({"pending":0,"published":0,"failed":0,"oldest_pending_at":null,"lag_seconds":0})"}},
  };
}

}  // namespace hapax::rest
