#include "serve/blocked_records.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/words.h"
#include "delivery/blocked_keys.h"
#include "wire/json_text.h"
#include "workflows/own_streams.h"

namespace hapax::serve {

namespace {

using delivery::BlockDecision;
using delivery::BlockedRecord;
using delivery::Workflow;

constexpr std::size_t kToldMax = 1'000;
constexpr std::size_t kLookedAtMax = 200'000;  // no source has more in flight

struct Place {
  delivery::BlockTerms terms;
  BlockedRecord record;
};

void tell(wire::JsonObject& out, const Place& place) {
  const BlockedRecord& record = place.record;
  out.bytes("key", record.key).add("stream", place.terms.stream);
  out.add("sequence", record.receipt.sequence).time("since_ms", record.since);
  out.time("until_ms", record.until).add("attempts", record.attempts);
  out.add("retries", record.retries).add("reason", record.reason);
}

Result<std::vector<Place>> blocked_places(const Workflow& workflow, Store& store,
                                          std::size_t most) {
  std::vector<Place> all;
  for (const delivery::BlockTerms& terms : workflows::block_terms_of(workflow)) {
    HAPAX_TRY(auto records, delivery::list_blocked(store, terms, most));
    for (BlockedRecord& record : records) all.push_back({terms, std::move(record)});
  }
  return all;
}

Result<BlockDecision> decision_named(std::string_view word) {
  const auto words = words_of(BlockDecision{});
  const auto at = std::find(words.begin(), words.end(), word);
  if (at != words.end()) return static_cast<BlockDecision>(at - words.begin());
  return Error{Errc::kInvalidArgument,
               base::format("decision: expected {}, got '{}'", base::joined(words, ", "), word)};
}

// What a dead letter says, and what the history of a record says that is sent again.
std::string reason_of(const rest::BlockedDecision& decision, const BlockedRecord& record) {
  std::string who = decision.actor.empty() ? "" : " by " + decision.actor;
  const std::string why = decision.reason.empty() ? "" : ": " + decision.reason;
  return base::format("{}; {}{}{}", record.reason,
                      decision.word == "park" ? "parked" : "sent again", who, why);
}

Error moved_on(const Workflow& workflow) {
  return Error{Errc::kPreconditionFailed,
               base::format("what blocks this key of workflow '{}' has just moved on; list what is "
                            "blocked, and decide again",
                            workflow.id.text())};
}

}  // namespace

Result<std::string> blocked_records(const Workflow& workflow, Store& store) {
  HAPAX_TRY(std::vector<Place> all, blocked_places(workflow, store, kToldMax + 1));
  const bool more = all.size() > kToldMax;
  if (more) all.resize(kToldMax);
  return wire::JsonObject().list("blocked", all, tell).add("more", more).text();
}

Result<std::string> decide_blocked_records(const Workflow& workflow,
                                           const rest::BlockedDecision& decision, Store& store) {
  HAPAX_TRY(const BlockDecision what, decision_named(decision.word));
  if (what == BlockDecision::kDrop && decision.reason.empty()) {
    return Error{Errc::kInvalidArgument,
                 "reason: say why the record is dropped; nobody can bring it back"};
  }
  HAPAX_TRY(std::vector<Place> all, blocked_places(workflow, store, kLookedAtMax));
  std::erase_if(all, [&](const Place& each) { return each.record.key != decision.key; });
  if (all.empty()) {
    return Error{Errc::kNotFound, base::format("nothing blocks key '{}' of workflow '{}'",
                                               decision.key, workflow.id.text())};
  }
  std::vector<Place> decided;
  for (const Place& each : all) {
    HAPAX_TRY(const bool counts, delivery::decide_blocked(store, each.terms, each.record, what,
                                                          reason_of(decision, each.record)));
    if (counts) decided.push_back(each);
  }
  if (decided.empty()) return moved_on(workflow);
  return wire::JsonObject().add("decision", decision.word).list("records", decided, tell).text();
}

}  // namespace hapax::serve
