#include "serve/workflow_records.h"

#include <variant>

#include "base/format.h"
#include "serve/dead_json.h"
#include "serve/replay_json.h"
#include "wire/json_text.h"
#include "workflows/dead_letters.h"
#include "workflows/undelivered.h"

namespace hapax::serve {

namespace {

using workflows::UndeliveredRecord;

Result<workflows::UndeliveredQuery> query_for(const rest::UndeliveredWanted& wanted) {
  workflows::UndeliveredQuery query{.endpoint = wanted.endpoint, .max = wanted.max};
  if (wanted.since_ms) query.since = time_from_ms(*wanted.since_ms);
  if (wanted.from.empty()) return query;
  const auto from = workflows::UndeliveredCursor::parse(wanted.from);
  if (!from) {
    return Error{Errc::kInvalidArgument,
                 base::format("from: expected `next` of the page before, such as 1.17.4, got '{}'",
                              wanted.from)};
  }
  query.from = *from;
  return query;
}

void tell_undelivered(wire::JsonObject& out, const UndeliveredRecord& record) {
  out.add("state", word_of(record.state)).add("stream", record.stream);
  out.add("sequence", record.sequence).time("came_ms", record.came);
  if (!record.id.empty()) out.bytes("id", record.id);
  if (!record.group.empty()) out.bytes("group", record.group);
  if (!record.key.empty()) out.bytes("key", record.key);
  if (!record.endpoint.empty()) out.add("endpoint", record.endpoint);
  if (record.since != Time{}) out.time("since_ms", record.since);
  if (record.until != Time{}) out.time("until_ms", record.until);
  out.add("attempts", record.attempts);
  if (record.replay > 0) out.add("replay", record.replay);
  if (record.behind != Sequence{}) {
    out.add("behind", record.behind).add("behind_blocked", record.behind_blocked);
  }
  if (!record.error.empty()) out.add("error", record.error);
}

// What lies in a database is not in the store.
void tell_elsewhere(wire::JsonObject& out, const delivery::Workflow& workflow) {
  if (!workflow.source || !std::holds_alternative<delivery::FromOutbox>(*workflow.source)) return;
  out.add("elsewhere",
          "rows that wait, and dead letters of the outbox, are in its database: hapax relay --from "
          "DATABASE --status, and --dead-letters");
}

}  // namespace

Result<std::string> WorkflowRecords::undelivered(std::string_view tenant, std::string_view workflow,
                                                 const rest::UndeliveredWanted& wanted,
                                                 Store& store) const {
  HAPAX_TRY(const delivery::Workflow declared, find_(tenant, workflow));
  HAPAX_TRY(const auto query, query_for(wanted));
  wire::JsonObject out;
  std::optional<workflows::UndeliveredCursor> next;
  if (wanted.count) {
    HAPAX_TRY(const auto count, workflows::count_undelivered(declared, query, store));
    out.object("counts", [&](wire::JsonObject& counts) {
      for (std::size_t i = 0; i < count.counts.size(); ++i) {
        counts.add(workflows::kUndeliveredStates[i], count.counts[i]);
      }
    });
    next = count.next;
  } else {
    HAPAX_TRY(const auto page, workflows::find_undelivered(declared, query, store));
    out.list("undelivered", page.records, tell_undelivered);
    next = page.next;
  }
  if (next) out.add("next", next->text());
  tell_elsewhere(out, declared);
  return out.text();
}

Result<std::string> WorkflowRecords::dead(std::string_view tenant, std::string_view workflow,
                                          const rest::DeadWanted& wanted, Store& store) const {
  const auto declared = find_(tenant, workflow);
  const DeadPlace place{declared ? &*declared : nullptr, workflows::dead_letters_of(workflow),
                        open_};
  return dead_json(place, wanted, conditions_, store);
}

Result<std::string> WorkflowRecords::replay_dead(std::string_view tenant, std::string_view workflow,
                                                 const rest::DeadWanted& wanted, rest::DeadAct act,
                                                 Store& store) const {
  const auto declared = find_(tenant, workflow);
  const DeadPlace place{declared ? &*declared : nullptr, workflows::dead_letters_of(workflow),
                        open_};
  return replay_dead_json(place, wanted, act, conditions_, store);
}

Result<std::string> WorkflowRecords::drop_dead(std::string_view /*tenant*/,
                                               std::string_view workflow, std::uint64_t through,
                                               Store& store) const {
  const std::string stream = workflows::dead_letters_of(workflow);
  HAPAX_CHECK(workflows::drop_dead_letters(stream, through, store));
  return wire::JsonObject().add("stream", stream).add("dropped_through", through).text();
}

Result<std::string> WorkflowRecords::replay_delivered(std::string_view tenant,
                                                      std::string_view workflow,
                                                      const rest::DeliveredWanted& wanted,
                                                      Store& store) const {
  HAPAX_TRY(const delivery::Workflow declared, find_(tenant, workflow));
  return replay_json(declared, wanted, store);
}

}  // namespace hapax::serve
