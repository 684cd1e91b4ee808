// The outbox of "exactly once patterns", as a stream: an event is a record, its id the message id,
// its aggregate the group key, its type the header event_type, its metadata the other headers. The
// relay is a consumer; an event is published when the relay has acked it. Outboxes of databases
// that workflows of the server deliver count beside it.
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
  std::vector<DatabaseOutbox> databases{};
};

struct Question {
  std::string stream;
  std::string relay;
  std::uint32_t max = 100;
  std::vector<DatabaseOutbox> databases{};
};

ConsumerStats relay_of(const StreamStats& stats, std::string_view name) {
  for (const ConsumerStats& one : stats.consumers) {
    if (one.consumer == name) return one;
  }
  ConsumerStats none;
  none.next = stats.first;
  return none;
}

// One that nobody wrote to is empty.
Status look_at_stream(Store& store, const Question& question, Outbox& outbox) {
  const auto stats = store.describe(question.stream);
  if (!stats && stats.error().code == Errc::kNotFound) return Ok{};
  if (!stats) return stats.error();
  const ConsumerStats relay = relay_of(*stats, question.relay);
  const std::uint64_t next = std::max(relay.next.value, stats->first.value);
  outbox.pending = relay.in_flight + relay.waiting + stats->last.value + 1 - next;
  outbox.failed = relay.dead_lettered;
  outbox.published =
      stats->last.value - std::min(stats->last.value, outbox.pending + outbox.failed);
  if (outbox.pending == 0) return Ok{};
  HAPAX_TRY(Records read, store.read({question.stream, relay.floor.next(), question.max}));
  outbox.oldest = std::move(read.records);
  return Ok{};
}

Result<Outbox> look(Store& store, const Question& question) {
  Outbox outbox;
  HAPAX_TRY(const Statistics all, store.statistics());
  outbox.now = all.log_time;
  HAPAX_CHECK(look_at_stream(store, question, outbox));
  outbox.databases = question.databases;
  for (const DatabaseOutbox& each : outbox.databases) {
    outbox.pending += each.pending;
    outbox.published += each.published;
    outbox.failed += each.failed;
  }
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

// What cannot be told because a database is away, is told as it was.
void tell_databases(wire::JsonObject& out, const Outbox& outbox) {
  if (outbox.databases.empty()) return;
  out.list("outboxes", outbox.databases, [&](wire::JsonObject& one, const DatabaseOutbox& each) {
    const auto moment = [&](std::string_view name, const std::optional<Time>& time) {
      time ? one.add(name, base::rfc3339_seconds(*time)) : one.raw(name, "null");
    };
    one.add("workflow", each.workflow).add("pending", each.pending);
    one.add("published", each.published).add("failed", each.failed);
    moment("oldest_pending_at", each.oldest);
    moment("asked_at", each.asked);
    if (!each.trouble.empty()) one.add("error", each.trouble);
  });
}

std::string pending_json(const Outbox& outbox) {
  wire::JsonArray events;
  for (const Record& record : outbox.oldest) events.add(json_of(record));
  wire::JsonObject out;
  out.add("pending", outbox.pending).raw("events", events.text());
  tell_databases(out, outbox);
  return out.text();
}

// Since when the oldest pending event waits, wherever it is.
std::optional<Time> oldest_of(const Outbox& outbox) {
  std::optional<Time> oldest;
  if (!outbox.oldest.empty()) oldest = outbox.oldest.front().time;
  for (const DatabaseOutbox& each : outbox.databases) {
    if (each.oldest) oldest = std::min(oldest.value_or(*each.oldest), *each.oldest);
  }
  return oldest;
}

std::string stats_json(const Outbox& outbox) {
  wire::JsonObject out;
  out.add("pending", outbox.pending).add("published", outbox.published);
  out.add("failed", outbox.failed);
  if (const auto oldest = oldest_of(outbox)) {
    const Duration lag = std::max(outbox.now - *oldest, Duration{0});
    out.add("oldest_pending_at", base::rfc3339_seconds(*oldest));
    out.add("lag_seconds", lag.count() / 1'000);
  } else {
    out.raw("oldest_pending_at", "null").raw("lag_seconds", "0");
  }
  tell_databases(out, outbox);
  return out.text();
}

// Whoever names a table means that stream alone.
void answer(access::Entry& entry, const SharedCall& call, const std::string& table,
            const OutboxDirectory& databases, std::string (*to_json)(const Outbox&)) {
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
  if (databases && !request.query_value("table")) {
    question.databases = databases(call->caller().tenant);
  }
  entry.ask(
      call->from(), call->caller(),
      [question = std::move(question)](Store& store) { return look(store, question); },
      [call, to_json](const Result<Outbox>& outbox) { respond_read(call, outbox, to_json); });
}

}  // namespace

void add_outbox_routes(Router& router, access::Entry& entry, const std::string& table,
                       const OutboxDirectory& databases) {
  const auto add = [&](access::Right right, std::string_view path,
                       std::string (*to_json)(const Outbox&), std::string name,
                       std::string summary) {
    Route route{"GET", std::string(kRoot).append(path),
                guarded({right},
                        [&entry, table, databases, to_json](const SharedCall& call) {
                          answer(entry, call, table, databases, to_json);
                        }),
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
