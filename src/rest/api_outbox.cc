// The outbox of "exactly once patterns", as a stream: an event is a record, its id the message id,
// its aggregate the group key, its type the header event_type, its metadata the other headers. The
// relay is a consumer; an event is published when the relay has acked it.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/time_text.h"
#include "rest/api.h"
#include "rest/replies.h"
#include "wire/json_schema.h"
#include "wire/json_text.h"
#include "wire/strict_json.h"

namespace hapax::rest {

namespace {

constexpr std::string_view kRelay = "relay";
constexpr std::string_view kType = "event_type";
// The names in the query.
constexpr std::array<std::pair<std::string_view, wire::Allowed>, 2> kNames{
    {{"table", wire::allowed::kName}, {"consumer", wire::allowed::kNameBelow}}};

struct Outbox {
  std::uint64_t pending = 0;
  std::uint64_t published = 0;
  std::uint64_t failed = 0;
  Time now{};
  std::vector<Record> oldest;  // behind the relay's floor
};

struct Question {
  std::string stream;
  std::string relay;
  std::uint32_t max = 100;
};

ConsumerStats relay_of(const StreamStats& stats, std::string_view name) {
  for (const ConsumerStats& one : stats.consumers) {
    if (one.consumer == name) return one;
  }
  ConsumerStats none;
  none.next = stats.first;
  return none;
}

// An outbox nobody wrote to is empty.
Result<Outbox> look(Store& store, const Question& question) {
  Outbox outbox;
  HAPAX_TRY(const Statistics all, store.statistics());
  outbox.now = all.log_time;
  const auto stats = store.describe(question.stream);
  if (!stats && stats.error().code == Errc::kNotFound) return outbox;
  if (!stats) return stats.error();
  const ConsumerStats relay = relay_of(*stats, question.relay);
  const std::uint64_t next = std::max(relay.next.value, stats->first.value);
  outbox.pending = relay.in_flight + relay.waiting + stats->last.value + 1 - next;
  outbox.failed = relay.dead_lettered;
  outbox.published =
      stats->last.value - std::min(stats->last.value, outbox.pending + outbox.failed);
  if (outbox.pending == 0) return outbox;
  HAPAX_TRY(Records read, store.read({question.stream, relay.floor.next(), question.max}));
  outbox.oldest = std::move(read.records);
  return outbox;
}

std::string json_of(const Record& record) {
  std::string type;
  wire::JsonObject metadata;
  for (const auto& [name, value] : record.headers) {
    name == kType ? static_cast<void>(type = value)
                  : static_cast<void>(metadata.bytes(name, value));
  }
  wire::JsonObject out;
  out.bytes("id", record.id.empty() ? std::to_string(record.sequence.value) : record.id);
  out.bytes("event_type", type).bytes("aggregate_id", record.group);
  wire::read_strict_json(record.payload).ok() ? out.raw("data", record.payload)
                                              : out.bytes("data", record.payload);
  out.raw("metadata", metadata.text()).add("status", "pending");
  return out.add("created_at", base::rfc3339_seconds(record.time))
      .raw("published_at", "null")
      .text();
}

std::string pending_json(const Outbox& outbox) {
  wire::JsonArray events;
  for (const Record& record : outbox.oldest) events.add(json_of(record));
  return wire::JsonObject().add("pending", outbox.pending).raw("events", events.text()).text();
}

std::string stats_json(const Outbox& outbox) {
  wire::JsonObject out;
  out.add("pending", outbox.pending).add("published", outbox.published);
  out.add("failed", outbox.failed);
  if (outbox.oldest.empty()) {
    return out.raw("oldest_pending_at", "null").raw("lag_seconds", "0").text();
  }
  const Time oldest = outbox.oldest.front().time;
  out.add("oldest_pending_at", base::rfc3339_seconds(oldest));
  return out.add("lag_seconds", (to_ms(outbox.now) - to_ms(oldest)) / 1'000).text();
}

void answer(access::Entry& entry, const SharedCall& call, const std::string& table,
            std::string (*to_json)(const Outbox&)) {
  const auto max = option<std::uint32_t>(call, "max", 100);
  if (!max) return respond_error(call, max.error());
  // Also of an outbox that nobody would have to read.
  if (*max == 0 || *max > limits::kReadMax) {
    const Errc code = *max == 0 ? Errc::kInvalidArgument : Errc::kLimitExceeded;
    return respond_error(
        call, {code, base::format("max: expected 1 to {}, got {}", limits::kReadMax, *max)});
  }
  for (const auto& [name, allowed] : kNames) {
    const Status named = check_name(call, name, allowed);
    if (!named) return respond_error(call, named.error());
  }
  const http::Request& request = call->request();
  std::string stream(request.query_value("table").value_or(table));
  if (const Status allowed = check_stream(call->caller(), stream); !allowed) {
    return respond_error(call, allowed.error());
  }
  Question question{std::move(stream),
                    std::string(request.query_value("consumer").value_or(kRelay)), *max};
  entry.ask(
      call->from(), call->caller(),
      [question = std::move(question)](Store& store) { return look(store, question); },
      [call, to_json](const Result<Outbox>& outbox) { respond_read(call, outbox, to_json); });
}

}  // namespace

void add_outbox_routes(Router& router, access::Entry& entry, const std::string& table) {
  const auto add = [&](access::Right right, std::string_view path,
                       std::string (*to_json)(const Outbox&), std::string name,
                       std::string summary) {
    Route route{
        "GET", std::string(kRoot).append(path),
        guarded({right}, [&entry, table, to_json](
                             const SharedCall& call) { answer(entry, call, table, to_json); }),
        std::move(summary), ""};
    route.answer = std::move(name);
    const std::string name_schema = wire::text_schema_of(wire::allowed::kName);
    route.query = {{"table", name_schema, "Stream of the outbox; " + table + " without it"},
                   {"consumer", wire::text_schema_of(wire::allowed::kNameBelow),
                    "Consumer that publishes; relay without it"},
                   {"max", wire::number_schema_of(wire::allowed::kRead),
                    "How many events at most; 100 without it"}};
    router.add(std::move(route));
  };
  // Who sees what records hold has the right to read them.
  add(access::Right::kConsume, "/outbox/pending", pending_json, "OutboxPending",
      "Events that are not published yet");
  add(access::Right::kAdmin, "/outbox/stats", stats_json, "OutboxStats", "Figures of the outbox");
}

}  // namespace hapax::rest
