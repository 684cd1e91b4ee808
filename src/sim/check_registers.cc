// Registers: those that are compared and set, and those that are used as Redis' clients use keys.
// "lock" is only ever set while absent, with an expiry; "brief" is set without one and may get one
// once per version; "count" is only added to; "dated" is only set, up to an instant of the wall
// clock, and judged where the clock is known (workload_registers.cc, world_time.cc).
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "sim/checks.h"

namespace hapax::sim {

namespace {

Judgement broken_promise(const char* invariant, std::string_view name, const std::string& what) {
  return Violation{invariant, "register " + std::string(name), what};
}

std::string in_ms(Time time) { return std::to_string(to_ms(time)); }

// What is known of one version of one name.
struct Life {
  std::optional<std::string_view> value;
  std::optional<Time> ends;      // given by an Expire that was told so
  std::uint64_t ends_since = 0;  // when that was answered
};

class KeyValueJudge {
 public:
  Judgement see(const Effect& effect) {
    if (effect.repeated()) return std::nullopt;
    const auto* held = effect.got<Held>();
    if (const auto* op = effect.as<Add>()) return see_add(effect, *op, held);
    if (held == nullptr) return std::nullopt;
    if (const auto* op = effect.as<Set>()) return see_set(effect, *op, *held);
    if (const auto* op = effect.as<Expire>()) return see_expire(effect, *op, *held);
    if (const auto* op = effect.as<Get>()) return see_get(effect, *op, *held);
    return std::nullopt;
  }

  Judgement see_contents(const Contents& contents) const {
    const auto* win = latest_win();
    if (win != nullptr && win->expires_at > contents.now) {
      const auto found = contents.registers.find("lock");
      if (found == contents.registers.end() || found->second.version < win->version) {
        return broken_promise("I1", "lock", "an acknowledged value is gone before its time");
      }
    }
    const auto counted = contents.registers.find("count");
    const std::int64_t sum =
        counted == contents.registers.end() ? 0 : std::stoll(counted->second.value);
    if (sum < count_) return broken_promise("I1", "count", "an acknowledged addition is gone");
    if (sum > count_told_ + count_doubted_) {
      return broken_promise("I2", "count",
                            base::format("is {} after {} additions and {} of unknown outcome", sum,
                                         count_told_, count_doubted_));
    }
    return std::nullopt;
  }

 private:
  using Place = std::pair<std::string_view, Version>;

  [[nodiscard]] const Held* latest_win() const {
    return wins_.empty() ? nullptr : wins_.rbegin()->second;
  }

  Judgement see_add(const Effect& effect, const Add& op, const Held* held) {
    if (!effect.told() && (effect.applied || effect.unknown())) ++count_doubted_;
    if (held == nullptr) return std::nullopt;
    ++count_told_;
    if (!numbers_.emplace(*held->number, true).second) {
      return broken_promise("I14", op.name, "two additions were told the same sum");
    }
    count_ = std::max(count_, *held->number);
    return std::nullopt;
  }

  Judgement see_set(const Effect& effect, const Set& op, const Held& held) {
    // One whose time was over already removes what was there.
    if (!held.applied || held.version == Version{0}) return std::nullopt;
    Life& life = lives_[{op.name, held.version}];
    if (life.value && *life.value != op.value) {
      return broken_promise("I14", op.name, "two writers won one version");
    }
    life.value = op.value;
    if (op.mode != SetMode::kAbsent) return std::nullopt;
    // One winner: the one before, by version, must have gone by then.
    const auto mine = wins_.emplace(held.version, &held).first;
    times_[held.version] = effect.time;
    const auto after = std::next(mine);
    if (mine != wins_.begin() && std::prev(mine)->second->expires_at > effect.time) {
      return broken_promise("I14", op.name,
                            "was won at " + in_ms(effect.time) + " although it was held up to " +
                                in_ms(std::prev(mine)->second->expires_at));
    }
    if (after != wins_.end() && held.expires_at > times_[after->first]) {
      return broken_promise("I14", op.name, "was won again before " + in_ms(held.expires_at));
    }
    return std::nullopt;
  }

  Judgement see_expire(const Effect& effect, const Expire& op, const Held& held) {
    if (!held.applied) return std::nullopt;
    Life& life = lives_[{op.name, held.version}];
    if (life.ends) return broken_promise("I14", op.name, "one version was given an expiry twice");
    life.ends = held.expires_at;
    life.ends_since = effect.ended();
    return std::nullopt;
  }

  Judgement see_get(const Effect& effect, const Get& op, const Held& held) {
    if (!held.applied) return std::nullopt;
    if (held.expires_at <= effect.time)
      return broken_promise("I12", op.name, "was there after its expiry");
    const Life& life = lives_[{op.name, held.version}];
    if (life.value && held.value != *life.value) {
      return broken_promise("I4", op.name, "was read with another value than it was set to");
    }
    const bool known = life.ends && life.ends_since < effect.invoked();
    if (known && held.expires_at != *life.ends) {
      return broken_promise("I1", op.name, "an acknowledged expiry is gone");
    }
    Version& read = read_[op.name];
    if (known_before(op.name, effect) && held.version < read) {
      return broken_promise("I1", op.name,
                            base::format("went back to version {}", held.version.value));
    }
    if (held.version >= read) {
      read = held.version;
      read_ended_[op.name] = effect.ended();
    }
    return std::nullopt;
  }

  [[nodiscard]] bool known_before(std::string_view name, const Effect& effect) const {
    const auto found = read_ended_.find(name);
    return found != read_ended_.end() && found->second < effect.invoked();
  }

  std::map<Place, Life> lives_;
  std::map<Version, const Held*> wins_;  // of "lock"
  std::map<Version, Time> times_;
  std::map<std::int64_t, bool> numbers_;
  std::map<std::string_view, Version> read_;  // the highest, by name
  std::map<std::string_view, std::uint64_t> read_ended_;
  std::int64_t count_ = 0;
  std::int64_t count_told_ = 0;
  std::int64_t count_doubted_ = 0;
};

Judgement check_key_value(const std::vector<Effect>& effects, const Contents& contents) {
  KeyValueJudge judge;
  for (const Effect& effect : effects) {
    if (auto found = judge.see(effect)) return found;
  }
  return judge.see_contents(contents);
}

Judgement check_guarded(const std::vector<Effect>& effects, const Contents& contents) {
  struct Latest {
    Version version;
    HybridTime at;
    std::string_view value;
    bool doubted = false;
  };
  std::map<std::string, Latest> registers;
  for (const Effect& effect : effects) {
    const auto* op = effect.as<Set>();
    if (op == nullptr || effect.repeated()) continue;
    Latest& latest = registers[std::string(op->name)];
    if (!effect.told()) latest.doubted = true;
    const auto* set = effect.got<Registered>();
    if (set == nullptr) continue;
    const std::string_view key = op->name;
    if (set->version <= latest.version)
      return broken_promise("I14", key, "two writers won one version");
    // One that is made begins above the versions of others that went.
    const bool follows = op->expected == Version{0} ? latest.version == Version{0}
                                                    : set->version == op->expected.next();
    if (op->mode == SetMode::kVersion && !follows) {
      return broken_promise("I14", key, "a version other than the expected one was replaced");
    }
    if (set->at <= latest.at) return broken_promise("I11", key, "its hybrid time did not grow");
    latest = {set->version, set->at, op->value, false};
  }
  for (const auto& [name, latest] : registers) {
    if (latest.version == Version{0}) continue;
    const auto found = contents.registers.find(name);
    if (found == contents.registers.end() || found->second.version < latest.version) {
      return broken_promise("I1", name, "an acknowledged value is gone");
    }
    const bool same_value = found->second.value == latest.value;
    if (!latest.doubted && (!same_value || found->second.version != latest.version)) {
      return broken_promise("I4", name, "holds a value that nobody was told of");
    }
  }
  return std::nullopt;
}

}  // namespace

Judgement check_registers(const std::vector<Effect>& effects, const Contents& contents) {
  if (auto found = check_guarded(effects, contents)) return found;
  return check_key_value(effects, contents);
}

}  // namespace hapax::sim
