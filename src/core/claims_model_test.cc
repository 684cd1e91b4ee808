// Random interleavings of several workers, people and the passing of time, against a model that
// knows of each key only the last thing that happened to it.
#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/format.h"
#include "core/claims.h"
#include "core/claims_harness.h"
#include "core/histories_test.h"
#include "core/test_tell.h"

namespace hapax::core::claims_harness {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kWorkers = 3;
const std::vector<std::string> kKeys = {"a", "b", "commit"};
const Fingerprint kCommit = print_of(3);

// --- the model -------------------------------------------------------------------------------

// What happened last to a key, with all that is known of the claim by then.
struct Event {
  enum Kind { kNothing, kWorking, kCompleted, kFailed, kUnknown };
  Kind kind = kNothing;
  Time at{};
  std::uint64_t fence = 0;
  std::uint64_t content = 0;
  std::uint32_t attempt = 0;
  std::string owner;
  std::string reason;
  Time lease_end{};
  seconds retention{0};
  seconds tombstone{0};
  bool guarded = false;
  Former former = Former::kNone;

  [[nodiscard]] Time end() const {
    switch (kind) {
      case kNothing:
        return at;
      case kWorking:
        return guarded ? Time::max() : lease_end + retention;
      case kCompleted:
        return at + std::max(retention, tombstone);
      case kFailed:
        return at + retention;
      case kUnknown:
        break;
    }
    return Time::max();
  }
};

class Model {
 public:
  Time now{};

  Verdict claim(const std::string& key, std::uint64_t content, const Terms& terms) {
    const Event last = look(key);
    const bool happened = last.kind == Event::kCompleted || last.kind == Event::kUnknown;
    if (happened || last.kind == Event::kWorking) {
      if (content != last.content) {
        return Conflict{print_of(last.content), print_of(content), last.at};
      }
    }
    if (last.kind == Event::kCompleted) {
      return DuplicateClaim{{}, Fence{last.fence}, last.at, last.end()};
    }
    if (last.kind == Event::kUnknown) return UnknownOutcome{last.owner, last.reason, last.at};
    if (last.kind == Event::kWorking && now < last.lease_end) {
      return InProgress{last.owner, last.lease_end, last.attempt};
    }
    // Not guarded itself, but by the next one.
    if (last.kind == Event::kWorking && terms.on_lapse == OnLapse::kUnknown) {
      const Event found = last_[key] = lapsed(last);
      return UnknownOutcome{found.owner, found.reason, found.at};
    }
    const Event opened{.kind = Event::kWorking,
                       .at = now,
                       .fence = next_fence_++,
                       .content = content,
                       .attempt = last.attempt + 1,
                       .owner = std::string(terms.owner),
                       .reason = {},
                       .lease_end = now + terms.lease,
                       .retention = seconds{terms.retention.raw()},
                       .tombstone = seconds{terms.tombstone.raw()},
                       .guarded = terms.on_lapse == OnLapse::kUnknown,
                       .former = after(last)};
    last_[key] = opened;
    return Claimed{Fence{opened.fence}, opened.attempt, opened.lease_end, opened.former};
  }

  Verdict renew(const std::string& key, Fence fence, Duration lease) {
    Event next = look(key);
    if (!holds(next, fence)) return Fenced{next.fence, fence.value};
    if (next.kind != Event::kWorking) return Refused{{Errc::kPreconditionFailed, ""}};
    next.lease_end = now + lease;
    last_[key] = next;
    return Renewed{next.lease_end};
  }

  Verdict settle(const std::string& key, Fence fence, Outcome outcome, std::string_view text) {
    const Event last = look(key);
    const bool repeated = last.kind == Event::kCompleted && outcome == Outcome::kCompleted;
    if (repeated && last.fence == fence.value) return Done{};
    if (!holds(last, fence)) return Fenced{last.fence, fence.value};
    if (outcome == Outcome::kReleased) {
      if (last.kind == Event::kUnknown) return Refused{{Errc::kPreconditionFailed, ""}};
      last_[key] = {};
      return Done{};
    }
    become(key, kind_of(outcome), text);
    return Done{};
  }

  Verdict resolve(const std::string& key, Resolution resolution, std::string_view reason) {
    if (look(key).kind != Event::kUnknown) return Refused{{Errc::kPreconditionFailed, ""}};
    if (resolution == Resolution::kRelease) last_[key] = {};
    if (resolution == Resolution::kCompleted) become(key, Event::kCompleted, "");
    if (resolution == Resolution::kNotApplied) become(key, Event::kFailed, reason);
    return Done{};
  }

  Verdict forget(const std::string& key) {
    if (look(key).kind == Event::kNothing) return Refused{{Errc::kNotFound, ""}};
    last_[key] = {};
    ++next_fence_;
    return Done{};
  }

  // An answered commit is a completed claim that nobody had to claim.
  void answer(const std::string& key, std::uint64_t content, seconds window) {
    last_[key] = {.kind = Event::kCompleted,
                  .at = now,
                  .fence = next_fence_++,
                  .content = content,
                  .retention = window,
                  .tombstone = window};
  }

 private:
  static Event::Kind kind_of(Outcome outcome) {
    if (outcome == Outcome::kCompleted) return Event::kCompleted;
    return outcome == Outcome::kFailed ? Event::kFailed : Event::kUnknown;
  }
  static bool holds(const Event& last, Fence fence) {
    return last.kind != Event::kNothing && last.kind != Event::kCompleted &&
           last.fence == fence.value;
  }
  static Event lapsed(Event event) {
    event.kind = Event::kUnknown;
    event.at = event.lease_end;
    event.reason = base::format(
        "the lease of owner '{}' ran out at {} ms (log time) before the owner settled; it may have "
        "done the work",
        event.owner, to_ms(event.lease_end));
    return event;
  }
  static Former after(const Event& last) {
    if (last.kind == Event::kNothing) return Former::kNone;
    const bool lapsed = last.kind == Event::kWorking || last.former == Former::kLapsed;
    return lapsed ? Former::kLapsed : Former::kFailed;
  }
  [[nodiscard]] Event look(const std::string& key) const {
    const auto found = last_.find(key);
    if (found == last_.end() || found->second.end() <= now) return {};
    const Event& event = found->second;
    const bool over = event.kind == Event::kWorking && event.guarded && event.lease_end <= now;
    return over ? lapsed(event) : event;
  }
  void become(const std::string& key, Event::Kind kind, std::string_view reason) {
    Event& event = last_[key] = look(key);
    if (event.kind == kind) return;
    event.kind = kind;
    event.at = now;
    event.reason = reason;
  }

  std::map<std::string, Event> last_;
  std::uint64_t next_fence_ = 1;
};

// Which fence a late worker is told and how a refusal is worded has tests of its own.
bool agree(const Verdict& real, const Verdict& expected) {
  if (const auto* fenced = std::get_if<Fenced>(&expected)) {
    const auto* told = std::get_if<Fenced>(&real);
    return told != nullptr && told->received == fenced->received;
  }
  if (const auto* refused = std::get_if<Refused>(&expected)) {
    const auto* told = std::get_if<Refused>(&real);
    return told != nullptr && told->error.code == refused->error.code;
  }
  return real == expected;
}

// --- the play --------------------------------------------------------------------------------

enum class Act {
  kClaim,
  kClaimAgain,
  kRenew,
  kSettle,
  kSettleAgain,
  kResolve,
  kForget,
  kPassTime,
  kMoveResult,
  kAnswerCommit,
  kNewSegment,
  kCollect,
  kEnd
};

struct Step {
  Act act = Act::kClaim;
  std::size_t key = 0;
  std::size_t worker = 0;
  std::uint32_t choice = 0;  // of content, fence, outcome, resolution or time
};
std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << "{act " << static_cast<int>(step.act) << ", key " << step.key << ", worker "
             << step.worker << ", choice " << step.choice << "}";
}

rc::Gen<Step> any_step() {
  const auto acts = rc::gen::map(rc::gen::inRange(0, static_cast<int>(Act::kEnd)),
                                 [](int act) { return static_cast<Act>(act); });
  return rc::gen::build<Step>(
      rc::gen::set(&Step::act, acts),
      rc::gen::set(&Step::key, rc::gen::inRange<std::size_t>(0, kKeys.size())),
      rc::gen::set(&Step::worker, rc::gen::inRange<std::size_t>(0, kWorkers)),
      rc::gen::set(&Step::choice, rc::gen::inRange<std::uint32_t>(0, 1024)));
}

// Long enough for claims to be taken over, expire and come back.
rc::Gen<std::vector<Step>> any_steps() {
  return rc::gen::scale(12.0, rig::histories<Step>(rc::gen::resize(100, any_step())));
}

class Play {
 public:
  ClaimsHarness store;
  std::map<std::string, std::vector<Fence>> given;  // all fences of a key
  std::map<Fence, std::string> first_result;
  std::map<std::string, int> seen;  // verdicts by word

  void take(const Step& step) {
    model_.now = store.now;
    const std::string& key = kKeys[step.key];
    switch (step.act) {
      case Act::kClaim:
      case Act::kClaimAgain:
        return claim(step, key);
      case Act::kRenew: {
        const Fence fence = fence_for(step, key);
        return compare(store.renew(key, fence, seconds{1}), model_.renew(key, fence, seconds{1}));
      }
      case Act::kSettle:
      case Act::kSettleAgain:
        return settle(step, key);
      case Act::kResolve:
        if (step.choice % 3 == 0) resolve(step, key);
        return;
      case Act::kForget:
        if (step.choice % 4 == 0) compare(store.forget(key), model_.forget(key));
        return;
      case Act::kPassTime:
        store.now += milliseconds{step.choice * 2};
        return;
      case Act::kMoveResult:
        store.move_result(key);
        return;
      case Act::kAnswerCommit:
        return answer_commit();
      case Act::kNewSegment:
        store.segments.emplace_back();
        return;
      case Act::kCollect:
        store.undo.forget();
        collect_claims(store.state, store.now, step.choice % 4);
        return;
      case Act::kEnd:
        return;
    }
  }

 private:
  void claim(const Step& step, const std::string& key) {
    const std::string owner = "w" + std::to_string(step.worker);
    const Terms terms{.owner = owner,
                      .lease = milliseconds{500 + step.choice},
                      .retention = Window{seconds{1 + step.choice % 3}},
                      .tombstone = Window{seconds{1 + step.choice % 5}},
                      .on_lapse = step.choice % 4 == 1 ? OnLapse::kUnknown : OnLapse::kTakeOver};
    const std::uint64_t content = step.choice % 8 == 0 ? 2 : 1;
    const auto before = store.status(key);
    const Verdict verdict = store.claim(key, content, terms);
    compare(verdict, model_.claim(key, content, terms));
    // K4, without the model: whoever reads before the claim can foretell the conflict.
    const bool other =
        before && before->state != ClaimState::kFailed && before->fingerprint != print_of(content);
    RC_ASSERT(std::holds_alternative<Conflict>(verdict) == other);
    if (const auto* claimed = std::get_if<Claimed>(&verdict)) {
      RC_ASSERT(claimed->fence > newest_);  // K2
      newest_ = claimed->fence;
      given[key].push_back(newest_);
      held_[{step.worker, key}] = newest_;
    }
  }

  void settle(const Step& step, const std::string& key) {
    const Fence fence = fence_for(step, key);
    const auto outcome = static_cast<Outcome>(step.choice / 4 % 4);
    const std::string text = "text " + std::to_string(++texts_);
    const Verdict verdict = store.settle(key, fence, outcome, text);
    compare(verdict, model_.settle(key, fence, outcome, text));
    if (verdict == Verdict(Done{}) && outcome == Outcome::kCompleted) {
      first_result.emplace(fence, text);
    }
  }

  void resolve(const Step& step, const std::string& key) {
    const auto resolution = static_cast<Resolution>(step.choice / 3 % 3);
    const std::string text = "text " + std::to_string(++texts_);
    const auto before = store.status(key);
    const Verdict verdict = store.resolve(key, resolution, text, "ann", text);
    compare(verdict, model_.resolve(key, resolution, text));
    if (verdict == Verdict(Done{}) && resolution == Resolution::kCompleted) {
      first_result.emplace(before->fence, text);
    }
  }

  void answer_commit() {
    const std::string& key = kKeys.back();
    if (store.status(key)) return;
    store.emit(CommitAnswered{hash_of(key), kCommit, store.state.next_fence, Window{seconds{2}},
                              "answer"});
    model_.answer(key, 3, seconds{2});
  }

  // Of the key's latest claim, of any claim, or what this worker was given last.
  Fence fence_for(const Step& step, const std::string& key) {
    const std::vector<Fence>& all = given[key];
    if (all.empty() || step.choice % 4 == 0) return held_[{step.worker, key}];
    return step.choice % 4 == 1 ? all[step.choice % all.size()] : all.back();
  }

  void compare(const Verdict& real, const Verdict& expected) {
    RC_ASSERT(word_of(real) == word_of(expected));
    RC_ASSERT(agree(real, expected));
    ++seen[std::string(word_of(real))];
  }

  Model model_;
  std::map<std::pair<std::size_t, std::string>, Fence> held_;
  Fence newest_;
  int texts_ = 0;
};

// Everything of the state that claims touch, as text.
std::string dump(const State& state, Time now) {
  std::ostringstream out;
  for (const auto& [hash, open] : rig::ordered(state.open_claims)) {
    const OpenClaim& claim = *open;
    out << hash.low << ' ' << static_cast<int>(claim.state) << ' ' << claim.scope() << ' '
        << claim.key() << ' ' << claim.fingerprint.hex() << ' ' << claim.owner() << ' '
        << claim.reason() << ' ' << claim.fence.value << ' ' << claim.attempts << ' '
        << to_ms(claim.since) << ' ' << to_ms(claim.lease_until) << ' ' << claim.retention.raw()
        << ' ' << claim.tombstone.raw() << ' ' << static_cast<int>(claim.on_lapse) << ' '
        << static_cast<int>(claim.former) << '\n';
  }
  for (const auto& [end, hash] : state.open_claims_end) {
    out << "end " << to_ms(end.first) << ' ' << hash.low << '\n';
  }
  for (const std::string& key : kKeys) {
    const SettledEntry* entry = state.settled.find(hash_of(key), now);
    if (entry == nullptr) continue;
    out << key << ' ' << entry->fingerprint.hex() << ' ' << entry->fence_number << ' '
        << entry->settled_ms << ' ' << entry->retention_seconds << ' ' << entry->tombstone_seconds
        << ' ' << entry->where.segment << ':' << entry->where.offset << '+' << entry->where.length
        << ' ' << entry->attempts << entry->forgotten << '\n';
  }
  for (const auto& [segment, bytes] : state.live_bytes) out << segment << " = " << bytes << '\n';
  for (const auto& [end, slice] : state.results_end) {
    for (const auto& [segment, bytes] : slice) {
      out << "until " << to_ms(end) << ' ' << segment << " = " << bytes << '\n';
    }
  }
  out << state.claims_unknown << ' ' << state.settled.live() << ' ' << state.next_fence.value << ' '
      << state.text_bytes << ' ' << state.streams.size();
  return out.str();
}

// Of all fences ever given for a key, those that could still settle it. Tried and taken back.
int current_fences(Play& play, const std::string& key) {
  const std::string before = dump(play.store.state, play.store.now);
  int current = 0;
  for (const Fence fence : play.given[key]) {
    const ClaimsHarness::Mark mark = play.store.mark();
    const bool settled =
        !std::holds_alternative<Fenced>(play.store.settle(key, fence, Outcome::kUnknown));
    const bool renewed = !std::holds_alternative<Fenced>(play.store.renew(key, fence));
    RC_ASSERT(settled == renewed);
    current += settled ? 1 : 0;
    play.store.roll_back(mark);
  }
  RC_ASSERT(dump(play.store.state, play.store.now) == before);
  return current;
}

void check_derived(const State& state) {
  std::map<std::pair<Time, Fence>, base::Hash128> ends;
  std::uint64_t unknown = 0;
  std::set<std::pair<Time, Fence>> guarded;
  for (const auto& [hash, claim] : rig::ordered(state.open_claims)) {
    ends.emplace(std::pair{claim->forgotten_at(), claim->fence}, hash);
    unknown += claim->state == ClaimState::kUnknown ? 1U : 0U;
    if (claim->is_guarded()) guarded.emplace(claim->lease_until, claim->fence);
  }
  RC_ASSERT(state.open_claims_end == ends);
  RC_ASSERT(state.claims_unknown == unknown);
  RC_ASSERT(state.guarded_claims == guarded);
}

void check_results(const Play& play) {
  for (const std::string& key : kKeys) {
    const auto done = find_settled(play.store.state, hash_of(key), play.store.now);
    if (!done || done->fingerprint == kCommit) continue;
    const std::string body = play.store.body_of(key);
    RC_ASSERT((body == "gone") == (play.store.now >= done->result_until()));
    RC_ASSERT(body == "gone" || body == play.first_result.at(done->fence()));  // K3
  }
}

// K1, K2, K3, K4, K5, K6: and every verdict is the one the model gives.
TEST(ClaimsModel, EveryInterleavingHasOneWinnerAndOneResult) {
  std::map<std::string, int> seen;
  const bool held = rc::check([&seen] {
    Play play;
    for (const Step& step : *any_steps()) {
      play.take(step);
      check_derived(play.store.state);
      check_results(play);
      RC_ASSERT(current_fences(play, kKeys[step.key]) <= 1);
    }
    for (const auto& [word, times] : play.seen) seen[word] += times;
  });
  EXPECT_TRUE(held);
  for (const char* word :
       {"fresh", "duplicate", "conflict", "in_progress", "unknown", "fenced", "done", "refused"}) {
    EXPECT_GT(seen[word], 50) << "'" << word << "' was hardly ever answered: nothing was tested";
  }
}

RC_GTEST_PROP(ClaimsModel, ARollBackRestoresEverythingTheFactsChanged, ()) {
  Play play;
  for (const Step& step : *any_steps()) play.take(step);
  const std::string before = dump(play.store.state, play.store.now);
  const Time then = play.store.now;
  const Undo::Mark mark = play.store.undo.mark();
  for (Step step : *any_steps()) {
    if (step.act == Act::kCollect) step.act = Act::kPassTime;  // What is collected is durable.
    play.take(step);
  }
  play.store.undo.roll_back(play.store.state, mark);
  RC_ASSERT(dump(play.store.state, then) == before);
}

RC_GTEST_PROP(ClaimsModel, ReplayingTheJournalGivesTheSameState, ()) {
  Play play;
  for (const Step& step : *any_steps()) play.take(step);
  const ClaimsHarness& store = play.store;
  State again{4};
  for (const ClaimsHarness::Journaled& each : store.journal) {
    const std::string bytes = store.read(each.at);
    const auto fact = decode_fact(std::string_view(bytes).substr(0, bytes.size() - kFactTrailer));
    apply(again, *fact, each.at, each.now, nullptr);
  }
  collect_claims(play.store.state, store.now, 1'000'000);
  collect_claims(again, store.now, 1'000'000);
  RC_ASSERT(dump(again, store.now) == dump(store.state, store.now));
}

}  // namespace
}  // namespace hapax::core::claims_harness
