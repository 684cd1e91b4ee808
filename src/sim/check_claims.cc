// What became of the claims: one holder at a time, one result for ever, nothing that sticks.
#include <algorithm>
#include <set>

#include "base/format.h"
#include "sim/checks.h"

namespace hapax::sim {

namespace {

// The latest that is known for certain about one key, and what may have happened since.
struct KeyWitness {
  enum class Standing : std::uint8_t { kFree, kHeld, kCompleted, kUnknown };
  Standing standing = Standing::kFree;
  Fence fence;
  std::string_view content;
  Time lease_until{};
  OnLapse on_lapse = OnLapse::kTakeOver;
  Time settled_at{};
  Window retention = Window::forever();
  Window tombstone = Window::forever();
  std::vector<const Effect*> doubtful;  // nobody knows whether they happened
  std::set<std::string> results;        // of the current fence: any of them may be stored
  std::map<Fence, StoredResult> shown;  // what duplicates were given

  [[nodiscard]] bool lapsed(Time now) const {
    return standing == Standing::kHeld && lease_until <= now;
  }
  // K6: by the word of the claim that lapsed alone.
  [[nodiscard]] bool is_unknown(Time now) const {
    return standing == Standing::kUnknown || (lapsed(now) && on_lapse == OnLapse::kUnknown);
  }
};

std::string flat(const ResultView& result) {
  return base::format("{}|{}|{}", result.status, result.headers, result.body);
}
std::string flat(const StoredResult& result) {
  return flat(ResultView{result.status, result.headers, result.body});
}

class ClaimCheck {
 public:
  explicit ClaimCheck(const std::vector<Effect>& effects) : effects_(effects) {}

  Judgement run() {
    gather_doubts();
    for (const Effect& effect : effects_) {
      if (!effect.told() || effect.repeated()) continue;
      Judgement found = std::visit([&](const auto& op) { return judge(effect, op); }, *effect.op);
      if (found) return found;
    }
    return std::nullopt;
  }

 private:
  using Standing = KeyWitness::Standing;

  template <class Rest>
  Judgement judge(const Effect&, const Rest&) {
    return std::nullopt;
  }

  void gather_doubts() {
    for (const Effect& effect : effects_) {
      if (effect.told()) continue;
      std::visit(
          [&](const auto& op) {
            if constexpr (requires { op.scope; }) {
              keys_[std::string(op.key)].doubtful.push_back(&effect);
            }
          },
          *effect.op);
    }
  }

  // Whether something may have changed the key unseen, before this answer was given.
  static bool doubted(const KeyWitness& key, const Effect& at) {
    return std::any_of(key.doubtful.begin(), key.doubtful.end(),
                       [&](const Effect* doubt) { return doubt->invoked() < at.ended(); });
  }
  static void forget_doubts(KeyWitness& key, const Effect& at) {
    std::erase_if(key.doubtful, [&](const Effect* doubt) { return doubt->ended() < at.ended(); });
  }

  // An open claim that nobody came back to; not one whose lapse is an unknown outcome.
  static bool forgotten(const KeyWitness& key, Time now) {
    return key.on_lapse == OnLapse::kTakeOver && now >= key.retention.end(key.lease_until);
  }

  Violation broken(std::string_view invariant, std::string_view key, std::string what) const {
    return {std::string(invariant), "claim " + std::string(key), std::move(what)};
  }

  Judgement judge(const Effect& effect, const Claim& op) {
    KeyWitness& key = keys_[std::string(op.key)];
    if (const auto* won = effect.got<Claimed>()) return judge_winner(effect, op, key, *won);
    if (const auto* known = std::get_if<DuplicateClaim>(effect.verdict)) {
      return effect.applied ? judge_duplicate(effect, op, key, *known) : std::nullopt;
    }
    if (const auto* busy = std::get_if<InProgress>(effect.verdict)) {
      if (busy->lease_until <= effect.time) {
        return broken("I16", op.key, "is in progress although its lease is over");
      }
      if (key.standing != Standing::kHeld && !doubted(key, effect) && effect.applied) {
        return broken("I14", op.key, "is in progress although nobody holds it");
      }
    }
    const bool in_doubt = std::holds_alternative<UnknownOutcome>(*effect.verdict);
    if (in_doubt) {
      const bool may_be = key.is_unknown(effect.time) || lapse_counts(effect, op, key);
      if (!may_be && !doubted(key, effect)) {
        return broken("I14", op.key, "is of unknown outcome although nobody said so");
      }
      if (may_be) key.standing = Standing::kUnknown;
    }
    const bool conflict = std::holds_alternative<Conflict>(*effect.verdict);
    const bool own = key.content == op.content && key.standing != Standing::kFree;
    if (conflict && own && !doubted(key, effect)) {
      return broken("I3", op.key, "conflicts with its own content");
    }
    return std::nullopt;
  }

  // A lapse is an unknown outcome if the claim that lapsed said so, or the next one.
  static bool lapse_counts(const Effect& effect, const Claim& op, const KeyWitness& key) {
    const bool said = key.on_lapse == OnLapse::kUnknown || op.on_lapse == OnLapse::kUnknown;
    return said && key.lapsed(effect.time);
  }

  Judgement judge_winner(const Effect& effect, const Claim& op, KeyWitness& key,
                         const Claimed& won) {
    if (won.fence <= newest_) return broken("I14", op.key, "fences do not grow");
    newest_ = won.fence;
    const bool certain = !doubted(key, effect);
    if (certain && key.standing == Standing::kHeld && effect.time < key.lease_until) {
      return broken("I14", op.key,
                    base::format("was won by fence {} while fence {} held it", won.fence.value,
                                 key.fence.value));
    }
    if (certain && key.standing == Standing::kUnknown) {
      return broken("I14", op.key, "was won although its outcome is unknown");
    }
    if (certain && lapse_counts(effect, op, key) && !forgotten(key, effect.time)) {
      return broken("I14", op.key, "was won although the lease of its owner ran out");
    }
    if (certain && key.lapsed(effect.time) && !forgotten(key, effect.time) &&
        won.former != Former::kLapsed) {
      return broken("I14", op.key, "was won without a word about the owner that lapsed");
    }
    const bool remembered =
        key.standing == Standing::kCompleted && effect.time < key.tombstone.end(key.settled_at);
    if (certain && remembered) {
      return broken("I2", op.key, "was won again although it was completed");
    }
    forget_doubts(key, effect);
    key.standing = Standing::kHeld;
    key.fence = won.fence;
    key.content = op.content;
    key.lease_until = won.lease_until;
    key.on_lapse = op.on_lapse;
    key.retention = op.retention;
    key.tombstone = op.tombstone;
    key.results.clear();
    return std::nullopt;
  }

  Judgement judge_duplicate(const Effect& effect, const Claim& op, KeyWitness& key,
                            const DuplicateClaim& known) {
    if (effect.time >= known.expires_at) {
      return broken("I12", op.key, "is a duplicate although its tombstone is over");
    }
    const bool certain = !doubted(key, effect);
    if (certain && key.standing != Standing::kCompleted) {
      return broken("I14", op.key, "is a duplicate although nobody completed it");
    }
    if (certain && (known.fence != key.fence || known.settled_at != key.settled_at)) {
      return broken("I4", op.key, "changed its fence or the time of its settling");
    }
    if (certain && key.content != op.content) {
      return broken("I3", op.key, "is a duplicate of other content");
    }
    const bool kept = effect.time < op.retention.end(known.settled_at);
    if (kept && !known.result) return broken("I13", op.key, "lost its result");
    if (!known.result) return std::nullopt;
    if (certain && !key.results.contains(flat(*known.result))) {
      return broken("I13", op.key, "has a result that nobody settled it with");
    }
    const auto [shown, first] = key.shown.try_emplace(known.fence, *known.result);
    if (!first && shown->second != *known.result) {
      return broken("I13", op.key, "was answered with two different results");
    }
    return std::nullopt;
  }

  // I11: what a newer fence supersedes has no effect any more.
  template <class WithFence>
  Judgement judge_fence(const WithFence& op, const KeyWitness& key) {
    if (op.fence >= key.fence) return std::nullopt;
    return broken("I11", op.key,
                  base::format("fence {} was heard although fence {} is newer", op.fence.value,
                               key.fence.value));
  }

  Judgement judge(const Effect& effect, const Renew& op) {
    KeyWitness& key = keys_[std::string(op.key)];
    if (const auto* renewed = effect.got<Renewed>()) {
      if (auto late = judge_fence(op, key)) return late;
      if (op.fence == key.fence) key.lease_until = renewed->lease_until;
    }
    return judge_fenced(effect, op, key);
  }

  // The holder itself must not be turned away.
  template <class WithFence>
  Judgement judge_fenced(const Effect& effect, const WithFence& op, const KeyWitness& key) {
    if (effect.got<Fenced>() == nullptr || op.fence != key.fence) return std::nullopt;
    const bool holds =
        key.standing == Standing::kHeld && effect.time < key.retention.end(key.lease_until);
    if (!holds || doubted(key, effect)) return std::nullopt;
    return broken("I14", op.key, "its holder was told that somebody else is");
  }

  Judgement judge(const Effect& effect, const Settle& op) {
    KeyWitness& key = keys_[std::string(op.key)];
    if (effect.got<Done>() == nullptr) return judge_fenced(effect, op, key);
    if (auto late = judge_fence(op, key)) return late;
    if (op.fence != key.fence) return std::nullopt;
    switch (op.outcome) {
      case Outcome::kCompleted:
        complete(key, effect, op.result);
        // Earlier attempts of unknown outcome may have been the ones that settled it.
        for (const Effect* doubt : key.doubtful) {
          const auto* settle = doubt->as<Settle>();
          if (settle != nullptr && settle->fence == op.fence) {
            key.results.insert(flat(settle->result));
          }
        }
        break;
      case Outcome::kFailed:
      case Outcome::kReleased:
        key.standing = Standing::kFree;
        break;
      case Outcome::kUnknown:
        key.standing = Standing::kUnknown;
        break;
    }
    return std::nullopt;
  }

  void complete(KeyWitness& key, const Effect& effect, const ResultView& result) {
    if (key.standing != Standing::kCompleted) {
      key.results.clear();
      key.results.insert(flat(result));
      key.settled_at = effect.time;
    }
    key.standing = Standing::kCompleted;
  }

  Judgement judge(const Effect& effect, const Resolve& op) {
    KeyWitness& key = keys_[std::string(op.key)];
    if (effect.got<Done>() == nullptr) return std::nullopt;
    if (!key.is_unknown(effect.time) && !doubted(key, effect)) {
      return broken("I14", op.key, "was resolved although its outcome was known");
    }
    if (op.resolution == Resolution::kCompleted) {
      complete(key, effect, op.result);
    } else {
      key.standing = Standing::kFree;
    }
    return std::nullopt;
  }

  Judgement judge(const Effect& effect, const Forget& op) {
    KeyWitness& key = keys_[std::string(op.key)];
    if (effect.got<Done>() == nullptr) return std::nullopt;
    key.standing = Standing::kFree;
    return std::nullopt;
  }

  const std::vector<Effect>& effects_;
  std::map<std::string, KeyWitness> keys_;
  Fence newest_;
};

}  // namespace

Judgement check_claims(const std::vector<Effect>& effects) { return ClaimCheck(effects).run(); }

}  // namespace hapax::sim
