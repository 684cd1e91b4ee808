#include "serve/attempts_json.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/format.h"
#include "delivery/attempt_pages.h"
#include "wire/json_text.h"
#include "workflows/attempt_keys.h"
#include "workflows/own_streams.h"

namespace hapax::serve {

namespace {

using delivery::AttemptOutcome;
using delivery::AttemptQuery;
using delivery::FoundAttempt;

Result<AttemptOutcome> outcome_of(const std::string& word) {
  const auto& words = delivery::kAttemptOutcomes;
  const auto* const at = std::find(words.begin(), words.end(), word);
  if (at != words.end()) return static_cast<AttemptOutcome>(at - words.begin());
  return Error{
      Errc::kInvalidArgument,
      base::format("outcome: expected delivered, rejected, try-later or unknown, got '{}'", word)};
}

Result<AttemptQuery> query_of(const delivery::Workflow* declared,
                              const rest::AttemptsWanted& wanted, Store& store) {
  AttemptQuery query{.endpoint = wanted.endpoint, .from = wanted.from, .max = wanted.max};
  if (wanted.since_ms) query.since = time_from_ms(*wanted.since_ms);
  if (wanted.until_ms) query.until = time_from_ms(*wanted.until_ms);
  if (wanted.outcome) {
    HAPAX_TRY(query.outcome, outcome_of(*wanted.outcome));
  }
  if (!wanted.key) return query;
  if (wanted.key->empty()) return Error{Errc::kInvalidArgument, "key: it is empty"};
  query.keys.emplace({*wanted.key});
  if (declared == nullptr) return query;
  HAPAX_TRY(auto made, workflows::delivery_keys_of(*declared, *wanted.key, store));
  query.keys->merge(made);
  return query;
}

void tell_attempt(wire::JsonObject& out, const FoundAttempt& found) {
  const delivery::Attempt& attempt = found.logged.attempt;
  const delivery::AttemptFacts& facts = attempt.facts;
  out.add("position", found.position);
  out.time("began_ms", found.logged.began).time("settled_ms", found.logged.noted);
  out.add("key", attempt.key);
  if (!attempt.endpoint.empty()) out.add("endpoint", attempt.endpoint);
  out.add("attempt", attempt.number);
  if (attempt.replay > 0) out.add("replay", attempt.replay);
  out.add("sequence", attempt.place).add("outcome", delivery::word_of(attempt.outcome));
  if (facts.status != 0) out.add("status", facts.status);
  out.object("times_us", [&](wire::JsonObject& times) {
    times.add("waited", facts.times.waited).add("name", facts.times.name);
    times.add("connected", facts.times.connected).add("tls", facts.times.tls);
    times.add("first_byte", facts.times.first_byte).add("total", facts.times.total);
  });
  if (!attempt.reason.empty()) out.add("reason", attempt.reason);
  if (!facts.answer.empty()) out.bytes("answer", facts.answer);
  if (facts.answer_cut) out.add("answer_cut", true);
}

std::string page_json(const delivery::Workflow* declared, const delivery::AttemptPage& page) {
  wire::JsonObject out;
  const auto source =
      declared == nullptr ? std::nullopt : workflows::attempted_stream_of(*declared);
  if (source) out.add("source", *source);
  out.list("attempts", page.attempts, tell_attempt);
  if (page.next) out.add("next", *page.next);
  return std::move(out).text();
}

}  // namespace

Result<std::string> attempts_json(const delivery::Workflow* declared, std::string_view workflow,
                                  const rest::AttemptsWanted& wanted, Store& store) {
  HAPAX_TRY(const AttemptQuery query, query_of(declared, wanted, store));
  const std::string stream = workflows::attempts_stream_of(workflow);
  HAPAX_TRY(const auto page, delivery::find_attempts(store, stream, query));
  return page_json(declared, page);
}

std::string no_attempts_json(const delivery::Workflow& declared) {
  return page_json(&declared, {});
}

}  // namespace hapax::serve
