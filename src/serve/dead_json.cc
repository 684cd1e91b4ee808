#include "serve/dead_json.h"

#include <memory>
#include <utility>

#include "base/format.h"
#include "serve/outbox_dead.h"
#include "wire/answer.h"
#include "wire/json_text.h"
#include "workflows/dead_letters.h"

namespace hapax::serve {

namespace {

using workflows::DeadFilter;
using workflows::DeadLetter;
using workflows::DeadPage;

// A filter, and the condition that it refers to.
struct MadeFilter {
  DeadFilter filter;
  std::unique_ptr<delivery::Transforming> condition;
};

Result<MadeFilter> filter_for(const rest::DeadWanted& wanted, workflows::JqConditions& conditions) {
  MadeFilter made;
  DeadFilter& filter = made.filter;
  filter.sequences.insert(wanted.sequences.begin(), wanted.sequences.end());
  if (wanted.since_ms) filter.since = time_from_ms(*wanted.since_ms);
  if (wanted.until_ms) filter.until = time_from_ms(*wanted.until_ms);
  filter.type = wanted.type;
  filter.group = wanted.group;
  filter.id = wanted.id;
  filter.reason = wanted.reason;
  filter.endpoint = wanted.endpoint;
  if (!wanted.status.empty()) {
    filter.status = delivery::StatusRule::parse(wanted.status, delivery::StatusWord::kRetry);
    if (!filter.status) {
      return Error{
          Errc::kInvalidArgument,
          base::format("status: expected one such as 422 or 4xx, got '{}'", wanted.status)};
    }
  }
  if (!wanted.jq.empty()) {
    HAPAX_TRY(made.condition, conditions.compile(wanted.jq));
    filter.condition = made.condition.get();
  }
  return made;
}

Result<DeadPage> page_for(const DeadPlace& place, const rest::DeadWanted& wanted,
                          workflows::JqConditions& conditions, Store& store) {
  HAPAX_TRY(const MadeFilter made, filter_for(wanted, conditions));
  return workflows::find_dead_letters(place.declared, place.stream, made.filter,
                                      {wanted.from, wanted.through, wanted.max}, store);
}

void tell_rest(wire::JsonObject& out, const DeadPage& page) {
  if (page.unjudged > 0) out.add("unjudged", page.unjudged).add("why_unjudged", page.why_unjudged);
  if (page.next) out.add("next", *page.next);
}

}  // namespace

Result<std::string> dead_json(const DeadPlace& place, const rest::DeadWanted& wanted,
                              workflows::JqConditions& conditions, Store& store) {
  HAPAX_TRY(const DeadPage page, page_for(place, wanted, conditions, store));
  wire::JsonObject out;
  out.add("stream", place.stream).add("last", page.last);
  out.list("dead", page.letters, [](wire::JsonObject& one, const DeadLetter& letter) {
    one.raw("record", wire::json_of(letter.record));
    if (!letter.endpoint.empty()) one.add("endpoint", letter.endpoint);
    const int status = workflows::status_in(letter.record.lineage->reason);
    if (status != 0) one.add("status", status);
  });
  tell_rest(out, page);
  const bool outbox = place.declared != nullptr && reads_outbox(*place.declared);
  if (outbox && wanted.from == 0) tell_outbox_dead(*place.declared, place.open, wanted, out);
  return out.text();
}

Result<std::string> replay_dead_json(const DeadPlace& place, const rest::DeadWanted& wanted,
                                     rest::DeadAct act, workflows::JqConditions& conditions,
                                     Store& store) {
  if (wanted.database) {
    if (place.declared == nullptr) {
      return Error{Errc::kNotFound, "a workflow that is not declared has no database"};
    }
    return replay_outbox_dead(*place.declared, place.open, wanted, act);
  }
  HAPAX_TRY(const DeadPage page, page_for(place, wanted, conditions, store));
  wire::JsonObject out;
  out.add("stream", place.stream).add("last", page.last).add("matched", page.letters.size());
  if (act == rest::DeadAct::kReplay) {
    HAPAX_TRY(const auto replay, workflows::put_back(place.stream, page.letters, store));
    out.add("replayed", replay.replayed).add("replayed_before", replay.repeated);
    out.add("gone", replay.gone);
    out.list("refused", replay.refused, [](wire::JsonObject& one, const auto& refused) {
      one.add("sequence", refused.sequence).add("reason", refused.reason);
    });
  }
  tell_rest(out, page);
  if (place.declared != nullptr && reads_outbox(*place.declared)) {
    out.add("elsewhere", kOutboxDeadCommand);
  }
  return out.text();
}

}  // namespace hapax::serve
