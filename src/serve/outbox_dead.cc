#include "serve/outbox_dead.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "base/format.h"
#include "delivery/endpoint_settings.h"
#include "host/clock.h"
#include "workflows/dead_letters.h"

namespace hapax::serve {

namespace {

// That one question asks a database for.
constexpr std::uint32_t kOutboxDeadMax = 10'000;

struct OutboxLetter {
  relay::DeadLetter letter;
  std::int64_t died_ms = 0;
};

bool is_any_or(const std::string& wanted, const std::string& value) {
  return wanted.empty() || wanted == value;
}

Result<std::optional<delivery::StatusRule>> status_for(const rest::DeadWanted& wanted) {
  if (wanted.status.empty()) return std::optional<delivery::StatusRule>();
  const auto rule = delivery::StatusRule::parse(wanted.status, delivery::StatusWord::kRetry);
  if (rule) return rule;
  return Error{Errc::kInvalidArgument,
               base::format("status: expected one such as 422 or 4xx, got '{}'", wanted.status)};
}

bool takes_letter(const rest::DeadWanted& wanted, const std::optional<delivery::StatusRule>& rule,
                  const OutboxLetter& one) {
  const relay::DeadLetter& letter = one.letter;
  const int status = workflows::status_in(letter.reason);
  const bool in_time = (!wanted.since_ms || one.died_ms >= *wanted.since_ms) &&
                       (!wanted.until_ms || one.died_ms <= *wanted.until_ms);
  return in_time && is_any_or(wanted.type, letter.type) && is_any_or(wanted.group, letter.key) &&
         is_any_or(wanted.id, letter.id) && wanted.endpoint.empty() &&
         letter.reason.find(wanted.reason) != std::string::npos &&
         (!rule || (status >= rule->first && status <= rule->last));
}

// Has neither a sequence nor a payload to judge.
bool can_be_chosen(const rest::DeadWanted& wanted) {
  return wanted.sequences.empty() && wanted.jq.empty();
}

Result<std::vector<OutboxLetter>> letters_of(relay::Source& outbox,
                                             const rest::DeadWanted& wanted) {
  HAPAX_TRY(const auto rule, status_for(wanted));
  HAPAX_TRY(auto letters, outbox.dead_letters(kOutboxDeadMax));
  host::HostClock clock;
  const std::int64_t now_ms = clock.wall_ms();
  std::vector<OutboxLetter> all;
  for (relay::DeadLetter& letter : letters) {
    OutboxLetter one{std::move(letter)};
    one.died_ms = now_ms - one.letter.dead_for.count();
    if (takes_letter(wanted, rule, one)) all.push_back(std::move(one));
  }
  return all;
}

Error no_outbox(const delivery::Workflow& workflow) {
  return {Errc::kPreconditionFailed,
          base::format("workflow '{}' has no dead letters in a database: its source is none",
                       workflow.id.text())};
}

}  // namespace

bool reads_outbox(const delivery::Workflow& workflow) {
  return workflow.source && std::holds_alternative<delivery::FromOutbox>(*workflow.source);
}

void tell_outbox_dead(const delivery::Workflow& workflow, const OpenOutboxOf& open,
                      const rest::DeadWanted& wanted, wire::JsonObject& out) {
  if (!open || !can_be_chosen(wanted)) {
    out.add("elsewhere", kOutboxDeadCommand);
    return;
  }
  auto outbox = open(workflow);
  auto letters = outbox ? letters_of(**outbox, wanted)
                        : Result<std::vector<OutboxLetter>>(std::move(outbox).error());
  if (!letters) {
    out.add("elsewhere", base::format("{} (the server could not ask: {})", kOutboxDeadCommand,
                                      letters.error().text()));
    return;
  }
  const bool more = letters->size() > wanted.max;
  if (more) letters->resize(wanted.max);
  out.list("database", *letters, [](wire::JsonObject& one, const OutboxLetter& found) {
    const relay::DeadLetter& letter = found.letter;
    one.add("id", letter.id).add("type", letter.type);
    if (!letter.key.empty()) one.add("group", letter.key);
    one.add("died_ms", found.died_ms).add("attempts", letter.attempts);
    one.add("reason", letter.reason);
  });
  out.add("more_in_database", more);
}

Result<std::string> replay_outbox_dead(const delivery::Workflow& workflow, const OpenOutboxOf& open,
                                       const rest::DeadWanted& wanted, rest::DeadAct act) {
  if (!reads_outbox(workflow) || !open) return no_outbox(workflow);
  if (!can_be_chosen(wanted)) {
    return Error{Errc::kInvalidArgument,
                 "dead letters in a database have no sequence, and jq does not see their payload; "
                 "choose by id, type, group, reason, status or time"};
  }
  HAPAX_TRY(const auto outbox, open(workflow));
  HAPAX_TRY(auto letters, letters_of(*outbox, wanted));
  const bool more = letters.size() > wanted.max;
  if (act == rest::DeadAct::kReplay && more) letters.resize(wanted.max);
  wire::JsonObject out;
  out.add("stream", "").add("last", 0).add("matched", letters.size());
  if (act == rest::DeadAct::kReplay) {
    std::vector<std::string> ids;
    for (const OutboxLetter& one : letters) ids.push_back(one.letter.id);
    relay::Redriven told;
    if (!ids.empty()) {
      HAPAX_TRY(told, outbox->redrive(ids));
    }
    // What is in neither number was published again, or removed, by somebody else.
    const std::uint64_t known = told.count + told.refused.size();
    out.add("replayed", told.count).add("replayed_before", 0);
    out.add("gone", letters.size() - std::min<std::uint64_t>(known, letters.size()));
    out.list("refused", told.refused, [](wire::JsonObject& one, const auto& refused) {
      one.add("id", refused.id).add("reason", refused.reason);
    });
  }
  if (act == rest::DeadAct::kReplay) out.add("more_in_database", more);
  return out.text();
}

}  // namespace hapax::serve
