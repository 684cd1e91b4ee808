#include "cli/trace_outbox.h"

#include "base/format.h"
#include "cli/relay.h"
#include "cli/show.h"
#include "wire/json_text.h"

namespace hapax::cli {

namespace {

std::string sentence_of(const relay::TracedEvent& event) {
  const std::string lane = event.lane ? base::format("lane {}", *event.lane) : "its lane";
  const std::string relay = event.relay.empty()
                                ? "no relay holds " + lane
                                : "relay " + printable(event.relay) + " holds " + lane;
  const std::string error = printable(event.last_error);
  if (event.state == "waiting") return "waits in " + lane + "; " + relay;
  if (event.state == "taken") return "is taken, or what comes before it is; " + relay;
  if (event.state == "held") return "waits in " + lane + " behind an earlier one of its key";
  if (event.state == "retry") {
    const std::string when =
        event.next_ms ? instant_text(*event.next_ms) : "once an earlier one of its key is settled";
    const std::string failed = event.attempts == 0
                                   ? "found its destination away"
                                   : base::format("was refused, {} attempts", event.attempts);
    return base::format("{}; the next {}: {}", failed, when, error);
  }
  if (event.state == "dead letter") {
    return base::format("is a dead letter after {} attempts: {}", event.attempts, error);
  }
  if (event.state == "published again") return "was sent or given up, and is published again";
  return "was sent";
}

std::string json_of(const std::string& from, const relay::TracedEvent& event) {
  wire::JsonObject object;
  object.add("from", from).add("number", event.number).add("state", event.state);
  const auto add = [&](const char* name, const auto& value) {
    value ? object.add(name, *value) : object.raw(name, "null");
  };
  add("lane", event.lane);
  object.add("type", event.type);
  event.key.empty() ? object.raw("key", "null") : object.add("key", event.key);
  object.add("attempts", event.attempts);
  event.last_error.empty() ? object.raw("last_error", "null")
                           : object.add("last_error", event.last_error);
  event.relay.empty() ? object.raw("relay", "null") : object.add("relay", event.relay);
  object.add("created_at_ms", event.created_ms);
  add("next_at_ms", event.next_ms);
  add("died_at_ms", event.died_ms);
  return object.text();
}

EventInOutbox told_of(const std::string& from, const relay::TracedEvent& event) {
  EventInOutbox told;
  told.json = json_of(from, event);
  told.happened.emplace_back(event.created_ms,
                             base::format("published in {} as number {}", from, event.number));
  if (event.died_ms) {
    told.happened.emplace_back(
        *event.died_ms, base::format("given up in {}: {}", from, printable(event.last_error)));
  }
  told.note = base::format("outbox {}: number {} {}", from, event.number, sentence_of(event));
  return told;
}

}  // namespace

Result<std::vector<EventInOutbox>> trace_in_outboxes(const OutboxesToTrace& outboxes,
                                                     const std::string& id) {
  RelayOptions options;
  options.schema = outboxes.schema;
  options.prefix = outboxes.prefix;
  options.status = true;  // It only looks.
  std::vector<EventInOutbox> all;
  for (const std::string& uri : outboxes.from) {
    const std::string from = without_password(uri);
    HAPAX_TRY(const auto source, open_source(options, uri, "trace"));
    HAPAX_TRY(const auto events, source->trace(id));
    for (const relay::TracedEvent& event : events) all.push_back(told_of(from, event));
    if (!events.empty()) continue;
    all.push_back({.note = base::format("outbox {}: not there; what was sent is forgotten after "
                                        "the retention",
                                        from)});
  }
  return all;
}

}  // namespace hapax::cli
