#include "serve/replay_json.h"

#include <optional>

#include "wire/json_text.h"
#include "workflows/replaying.h"

namespace hapax::serve {

namespace {

using Act = rest::DeliveredWanted::Act;

std::optional<workflows::ReplayTerms> terms_of(const rest::DeliveredWanted& wanted) {
  if (!wanted.since_ms) return std::nullopt;
  workflows::ReplayTerms terms{.since = time_from_ms(*wanted.since_ms),
                               .endpoint = wanted.endpoint};
  if (wanted.until_ms) terms.until = time_from_ms(*wanted.until_ms);
  return terms;
}

std::string told(const rest::DeliveredWanted& wanted, const workflows::ReplayPage& page) {
  const workflows::ReplayState& state = page.state;
  wire::JsonObject out;
  if (!wanted.id.empty()) out.add("id", wanted.id);
  out.add("replayed", state.replayed).add("repeated", page.repeated).add("gone", state.gone);
  out.list("gone_here", page.gone, [](wire::JsonObject& one, const auto& gone) {
    one.bytes("key", gone.key).add("sequence", gone.sequence);
  });
  out.add("done", state.done);
  if (!state.done) out.add("next", state.next);
  return out.text();
}

}  // namespace

Result<std::string> replay_json(const delivery::Workflow& workflow,
                                const rest::DeliveredWanted& wanted, Store& store) {
  const auto terms = terms_of(wanted);
  if (wanted.act == Act::kCount) {
    const workflows::ReplayState from{.terms = terms.value_or(workflows::ReplayTerms{}),
                                      .next = wanted.from};
    HAPAX_TRY(const auto page, workflows::count_delivered(workflow, from, wanted.max, store));
    return told(wanted, page);
  }
  if (wanted.act == Act::kCancel) {
    HAPAX_TRY(const auto state, workflows::cancel_replay(workflow, wanted.id, store));
    return told(wanted, {.state = state});
  }
  HAPAX_TRY(const auto page,
            workflows::replay_delivered(workflow, wanted.id, terms, wanted.max, store));
  return told(wanted, page);
}

}  // namespace hapax::serve
