#include "workflows/replaying.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include <hapax/limits.h>

#include "base/format.h"
#include "base/whole_number.h"
#include "delivery/attempt_pages.h"
#include "workflows/attempt_keys.h"
#include "workflows/own_streams.h"
#include "workflows/plan.h"

namespace hapax::workflows {

namespace {

using delivery::FoundAttempt;
using delivery::Workflow;

constexpr int kReplayForm = 1;
// Of the records that one commit copies: it must fit a batch of the journal.
constexpr std::uint64_t kReplayBytesMax = std::uint64_t{16} << 20;
// So long it is known that a replay was done.
constexpr Duration kReplayKept{std::chrono::days{400}};

// The register that names the replay that is not done, and that of a replay.
std::string running_register(const Workflow& workflow) { return workflow.id.text() + ".replays"; }
std::string replay_register(const Workflow& workflow, const std::string& id) {
  return base::format("{}.replays/{}", workflow.id.text(), id);
}

Error cannot(const Workflow& workflow, std::string_view why) {
  return {
      Errc::kPreconditionFailed,
      base::format("deliveries of workflow '{}' cannot be replayed: {}", workflow.id.text(), why)};
}

// One delivery that is to be sent again.
struct Resent {
  FoundAttempt found;
  Sequence sequence{};
  bool forgets = false;  // that it was delivered, which would keep it from being sent
};

class Replayer {
 public:
  Replayer(const Workflow& workflow, Store& store) : workflow_(workflow), store_(store) {
    const auto guarantee = workflow.delivery.guarantee;
    const bool claims = guarantee == delivery::Guarantee::kAtMostOnce ||
                        guarantee == delivery::Guarantee::kExactlyOnce;
    if (claims) claims_ = workflow.id.text() + ".deliveries";
  }

  // kPreconditionFailed: nothing of it can be replayed.
  Status open() {
    if (workflow_.draft()) return cannot(workflow_, "it is a draft");
    const auto stream = attempted_stream_of(workflow_);
    if (!stream) {
      return cannot(workflow_, "its records are rows of a database; publish them there again");
    }
    stream_ = *stream;
    if (!attempt_log_of(workflow_)) {
      return cannot(workflow_, "it keeps no log of attempts (retention.attempts: 0s)");
    }
    key_of_ = workflows::key_of(workflow_, store_.id());
    const auto found = store_.read({.stream = stream_, .max = 1});
    if (!found) return found.error();
    stream_uid_ = found->stream_uid;
    return Ok{};
  }
  [[nodiscard]] const std::string& stream() const { return stream_; }

  struct Found {
    std::vector<Resent> resent;
    std::vector<ReplayPage::Gone> gone;
    std::optional<std::uint64_t> next;  // none: that was all
  };
  Result<Found> find(const ReplayState& state, std::size_t max) {
    delivery::AttemptQuery query{.outcome = delivery::AttemptOutcome::kDelivered,
                                 .since = state.terms.since,
                                 .until = state.terms.until,
                                 .from = state.next,
                                 .max = max};
    if (!state.terms.endpoint.empty()) query.endpoint = state.terms.endpoint;
    const std::string log = attempts_stream_of(workflow_.id.text());
    auto page = delivery::find_attempts(store_, log, query);
    Found all;
    if (!page && page.error().code == Errc::kNotFound) return all;  // Nothing was attempted.
    if (!page) return std::move(page).error();
    all.next = page->next;
    std::set<std::string> known;  // a key is forgotten once
    std::uint64_t bytes = 0;
    for (FoundAttempt& each : page->attempts) {
      if (bytes >= kReplayBytesMax) {
        all.next = each.position;
        break;
      }
      HAPAX_TRY(const auto there, find_record(each));
      if (!there) {
        const auto& attempt = each.logged.attempt;
        all.gone.push_back({attempt.key, attempt.place});
        continue;
      }
      bytes += there->payload.size();
      Resent resent{std::move(each)};
      resent.sequence = Sequence{resent.found.logged.attempt.place};
      const std::string& key = resent.found.logged.attempt.key;
      if (!known.contains(key)) {
        HAPAX_TRY(resent.forgets, was_claimed(key));
        known.insert(key);
      }
      all.resent.push_back(std::move(resent));
    }
    return all;
  }

  // The operations that put them back; they refer to `resent` and `id`.
  void say(const std::vector<Resent>& resent, const std::string& id, std::vector<Op>& ops) const {
    for (const Resent& each : resent) {
      ops.emplace_back(Redrive{.dead_letters = stream_,
                               .sequence = each.sequence,
                               .again_for = workflow_.id.text(),
                               .replay = id});
      if (!each.forgets) continue;
      ops.emplace_back(Forget{.scope = claims_,
                              .key = each.found.logged.attempt.key,
                              .actor = workflow_.id.text(),
                              .reason = id});
    }
  }

 private:
  // A record of that sequence can be another one by now: its stream was made again.
  Result<std::optional<Record>> find_record(const FoundAttempt& found) {
    const delivery::Attempt& attempt = found.logged.attempt;
    HAPAX_TRY(Records page,
              store_.read({.stream = stream_, .from = Sequence{attempt.place}, .max = 1}));
    if (page.records.empty()) return std::optional<Record>();
    Record& record = page.records.front();
    if (record.sequence.value != attempt.place) return std::optional<Record>();
    const auto key = key_of_(record, stream_uid_);
    if (!key || *key != attempt.key) return std::optional<Record>();
    return std::optional(std::move(record));
  }
  Result<bool> was_claimed(const std::string& key) {
    if (claims_.empty()) return false;
    HAPAX_TRY(const auto claim, store_.find_claim(claims_, key));
    return claim && claim->state == ClaimState::kCompleted;
  }

  const Workflow& workflow_;
  Store& store_;
  std::string claims_{};  // scope; empty: attempts are no claims
  std::string stream_{};
  std::uint64_t stream_uid_ = 0;
  delivery::StreamSource::KeyOf key_of_{};
};

// A replay that has begun, and the version of its register.
struct Begun {
  ReplayState state;
  Version version{};
};

Result<std::optional<Begun>> find_replay(Store& store, const std::string& name) {
  HAPAX_TRY(const auto found, store.find_register(name));
  if (!found) return std::optional<Begun>();
  const auto state = read_replay(found->value);
  if (!state) {
    return Error{Errc::kPreconditionFailed,
                 base::format("register '{}' does not hold the state of a replay", name)};
  }
  return std::optional(Begun{*state, found->version});
}

Error other_runs(const Workflow& workflow, std::string_view running) {
  return {Errc::kPreconditionFailed,
          base::format("replay {} of workflow '{}' is not done; go on with it, or cancel it",
                       running, workflow.id.text())};
}

Set note_of(const std::string& name, const std::string& value, Version expected) {
  return {.name = name,
          .value = value,
          .mode = SetMode::kVersion,
          .expected = expected,
          .expiry = {.kind = Expiry::Kind::kAfter, .after = kReplayKept}};
}

// Z33
Result<Begun> begin_replay(const Workflow& workflow, const std::string& id,
                           const ReplayTerms& terms, Store& store) {
  const std::string running = running_register(workflow);
  const std::string name = replay_register(workflow, id);
  HAPAX_TRY(const Statistics figures, store.statistics());
  ReplayState state{.terms = terms};
  state.terms.until = std::min(state.terms.until, figures.log_time);
  const std::string value = text_of(state);
  const Op ops[] = {note_of(running, id, Version{0}), note_of(name, value, Version{0})};
  HAPAX_TRY(const Answer answer, store.commit({.ops = ops, .mode = Mode::kAtomic}));
  if (answer.committed) return Begun{state, std::get<Registered>(answer.verdicts[1]).version};
  if (const auto* refused = std::get_if<Refused>(&answer.verdicts[0])) return refused->error;
  if (const auto* refused = std::get_if<Refused>(&answer.verdicts[1])) return refused->error;
  HAPAX_TRY(const auto begun, find_replay(store, name));
  if (begun) return *begun;  // By somebody else, at once.
  HAPAX_TRY(const auto other, store.find_register(running));
  return other_runs(workflow, other ? other->value : "that has just ended");
}

bool is_of(const ReplayState& state, const ReplayTerms& terms) {
  return state.terms.since == terms.since && state.terms.endpoint == terms.endpoint &&
         (state.terms.until == terms.until || terms.until > state.terms.until);
}

Result<Begun> find_or_begin(const Workflow& workflow, const std::string& id,
                            const std::optional<ReplayTerms>& terms, Store& store) {
  HAPAX_TRY(auto begun, find_replay(store, replay_register(workflow, id)));
  if (!begun && terms) return begin_replay(workflow, id, *terms, store);
  if (!begun) {
    return Error{Errc::kNotFound,
                 base::format("there is no replay {} of workflow '{}'", id, workflow.id.text())};
  }
  if (terms && !is_of(begun->state, *terms)) {
    return Error{Errc::kPreconditionFailed,
                 base::format("replay {} of workflow '{}' began with another time or endpoint; "
                              "go on without them, or choose another id",
                              id, workflow.id.text())};
  }
  return *begun;
}

void count_page(const Replayer::Found& found, ReplayState& state) {
  state.gone += found.gone.size();
  state.done = !found.next;
  if (found.next) state.next = *found.next;
}

// Those that a commit did not take because they went meanwhile. An error: another reason.
Result<bool> drop_gone(const Answer& answer, Replayer::Found& found) {
  std::size_t at = 1;  // Behind the state.
  for (std::size_t i = 0; i < found.resent.size(); ++i) {
    const Verdict& verdict = answer.verdicts[at];
    at += found.resent[i].forgets ? 2U : 1U;
    const auto* refused = std::get_if<Refused>(&verdict);
    if (refused == nullptr) continue;
    if (refused->error.code != Errc::kNotFound) return refused->error;
    const delivery::Attempt& attempt = found.resent[i].found.logged.attempt;
    found.gone.push_back({attempt.key, attempt.place});
    found.resent.erase(found.resent.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  return false;
}

// Z32: one commit puts records back and says so. Nothing: the replay has moved on meanwhile.
Result<std::optional<ReplayPage>> put_page(const Workflow& workflow, const std::string& id,
                                           const Begun& begun, const Replayer& replayer,
                                           Replayer::Found found, Store& store) {
  const std::string name = replay_register(workflow, id);
  const std::string running = running_register(workflow);
  while (true) {
    ReplayPage page{.state = begun.state};
    count_page(found, page.state);
    page.state.replayed += found.resent.size();
    const std::string value = text_of(page.state);
    std::vector<Op> ops{note_of(name, value, begun.version)};
    replayer.say(found.resent, id, ops);
    if (page.state.done) ops.emplace_back(Unset{.name = running});
    HAPAX_TRY(const Answer answer, store.commit({.ops = ops, .mode = Mode::kAtomic}));
    if (answer.committed) {
      page.gone = std::move(found.gone);
      page.repeated = static_cast<std::uint64_t>(std::count_if(
          answer.verdicts.begin(), answer.verdicts.end(),
          [](const Verdict& verdict) { return std::holds_alternative<Duplicate>(verdict); }));
      return std::optional(std::move(page));
    }
    if (std::holds_alternative<Superseded>(answer.verdicts.front())) {
      return std::optional<ReplayPage>();
    }
    if (const auto* refused = std::get_if<Refused>(&answer.verdicts.front())) {
      return refused->error;
    }
    HAPAX_TRY(const bool dropped, drop_gone(answer, found));
    if (!dropped) {
      return Error{Errc::kUnavailable, "what was to be replayed is changing; try again"};
    }
  }
}

}  // namespace

// "1 0 17 42 3 1600000000000 1700000000000 crm": the form, whether it is done, the next position,
// both counts, since, until, and the endpoint.
std::string text_of(const ReplayState& state) {
  return base::format("{} {} {} {} {} {} {} {}", kReplayForm, state.done ? 1 : 0, state.next,
                      state.replayed, state.gone, to_ms(state.terms.since),
                      to_ms(state.terms.until), state.terms.endpoint);
}

std::optional<ReplayState> read_replay(std::string_view text) {
  int form = 0;
  int done = 0;
  std::int64_t since = 0;
  std::int64_t until = 0;
  ReplayState state;
  const bool whole = base::take_word(text, form) && form == kReplayForm &&
                     base::take_word(text, done) && base::take_word(text, state.next) &&
                     base::take_word(text, state.replayed) && base::take_word(text, state.gone) &&
                     base::take_word(text, since) && base::take_word(text, until);
  if (!whole) return std::nullopt;
  state.done = done != 0;
  state.terms = {time_from_ms(since), time_from_ms(until), std::string(text)};
  return state;
}

Result<ReplayPage> replay_delivered(const Workflow& workflow, const std::string& id,
                                    const std::optional<ReplayTerms>& terms, std::size_t max,
                                    Store& store) {
  Replayer replayer(workflow, store);
  HAPAX_CHECK(replayer.open());
  while (true) {
    HAPAX_TRY(const Begun begun, find_or_begin(workflow, id, terms, store));
    if (begun.state.done) return ReplayPage{.state = begun.state};
    HAPAX_TRY(auto found, replayer.find(begun.state, max));
    HAPAX_TRY(auto page, put_page(workflow, id, begun, replayer, std::move(found), store));
    if (page) return *std::move(page);
  }
}

Result<ReplayPage> count_delivered(const Workflow& workflow, const ReplayState& state,
                                   std::size_t max, Store& store) {
  Replayer replayer(workflow, store);
  HAPAX_CHECK(replayer.open());
  ReplayPage page{.state = state};
  HAPAX_TRY(auto found, replayer.find(state, max));
  count_page(found, page.state);
  page.state.replayed += found.resent.size();
  page.gone = std::move(found.gone);
  return page;
}

Result<ReplayState> cancel_replay(const Workflow& workflow, const std::string& id, Store& store) {
  const std::string name = replay_register(workflow, id);
  while (true) {
    HAPAX_TRY(const auto begun, find_replay(store, name));
    if (!begun) {
      return Error{Errc::kNotFound,
                   base::format("there is no replay {} of workflow '{}'", id, workflow.id.text())};
    }
    if (begun->state.done) return begun->state;
    ReplayState state = begun->state;
    state.done = true;
    const std::string value = text_of(state);
    const std::string running = running_register(workflow);
    const Op ops[] = {note_of(name, value, begun->version), Unset{.name = running}};
    HAPAX_TRY(const Answer answer, store.commit({.ops = ops, .mode = Mode::kAtomic}));
    if (answer.committed) return state;
    if (const auto* refused = std::get_if<Refused>(&answer.verdicts.front())) {
      return refused->error;
    }
  }
}

}  // namespace hapax::workflows
