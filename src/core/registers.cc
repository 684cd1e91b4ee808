#include "core/registers.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/mutant.h"
#include "base/whole_number.h"
#include "core/show_text.h"
#include "core/turn.h"

namespace hapax::core {

namespace {

using base::Mutant;
using base::mutant;

// H1: the clock is never behind anything it has seen, so a wall clock that jumps back cannot make
// a later write lose, and one that jumps ahead does not drag the register along: log time is
// clamped.
// H2: log time may lag behind the wall clock for hours after a jump. Writers with the right time
// are not refused for that; those far ahead of both are, or they would win for ever.
HybridTime tick(const HybridTime& seen, Time now) {
  if (to_ms(now) > seen.wall_ms) return {to_ms(now), 0, 0};
  // A writer may have given the highest counter there is.
  const bool full = seen.counter == std::numeric_limits<std::uint32_t>::max();
  return full ? HybridTime{seen.wall_ms + 1, 0, 0} : HybridTime{seen.wall_ms, seen.counter + 1, 0};
}

// --- expiry --------------------------------------------------------------------------------------

// W6: what a caller gives as an absolute time is one of the wall clock.
Time end_of(const Expiry& expiry, const Register* known, const Turn& turn) {
  switch (expiry.kind) {
    case Expiry::Kind::kNever:
      break;
    case Expiry::Kind::kKeep:
      return known == nullptr ? Time::max() : known->expires_at;
    case Expiry::Kind::kAt:
      return mutant(Mutant::kAbsoluteIsLogTime) ? expiry.at : turn.moment().log_at(expiry.at);
    case Expiry::Kind::kAfter:
      return turn.now() + expiry.after;
  }
  return Time::max();
}

bool may_expire(ExpireIf only_if, Time former, Time end) {
  switch (only_if) {
    case ExpireIf::kAlways:
      break;
    case ExpireIf::kNever:
      return former == Time::max();
    case ExpireIf::kSome:
      return former != Time::max();
    case ExpireIf::kLater:
      return end > former;
    case ExpireIf::kEarlier:
      return end < former;
    case ExpireIf::kSomeEarlier:
      return former != Time::max() && end < former;
  }
  return true;
}

// --- writing -------------------------------------------------------------------------------------

struct Write {
  std::string_view name;
  std::string_view value;
  HybridTime at;
  Time expires_at = Time::max();
  bool keeps_end = false;  // of the register that is there, if one is
};

// A7: what it is given may not be later than the tenant's; what it was given before stays.
std::optional<Error> check_end(const Turn& turn, const Tenant& tenant, std::string_view name,
                               Time end) {
  const Duration max = tenant.share.ttl_max;
  if (max.count() == 0 || end <= turn.latest() + max) return std::nullopt;
  return Error{
      Errc::kLimitExceeded,
      base::format(
          "key {} would stay {}; this tenant may keep one for {} ms (ttl_max). Say when it goes, "
          "within that: EX or PX of SET, expires_in_ms.",
          shown(name),
          end == Time::max() ? "forever" : base::format("for {} ms", (end - turn.now()).count()),
          max.count())};
}

Version next_version(const State& state, const Register* known) {
  return (known == nullptr ? state.version_floor : known->version).next();  // H3
}

// Sets the register, or removes it if its time is over. Answers its version; 0 = it is not there.
Result<Version> write(Turn& turn, base::Hash128 key, const Register* known, const Write& set) {
  if (set.expires_at <= turn.now()) {
    if (known != nullptr) turn.emit(RegisterGone{key});
    return Version{0};
  }
  Tenant& tenant = turn.state().tenants.of(set.name);
  if (known == nullptr || !set.keeps_end) {
    if (auto late = check_end(turn, tenant, set.name, set.expires_at)) return *std::move(late);
  }
  const Version version = next_version(turn.state(), known);
  const auto* there = turn.state().registers.find(key);  // One that expired takes room, too.
  const std::uint64_t before =
      there == nullptr ? 0 : register_bytes((*there)->words.bytes(), (*there)->expires_at);
  const std::uint64_t after = register_bytes(set.name.size() + set.value.size(), set.expires_at);
  const std::uint64_t more = after - std::min(after, before);
  free_storage(turn, tenant, more);
  if (auto full = check_growth(turn.state(), tenant, before, after)) return *std::move(full);
  if (auto full = check_storage(tenant, more)) return *std::move(full);
  turn.emit(RegisterSet{key, set.name, set.value, version, set.at, set.expires_at});
  return version;
}

// Of kVersion and kLastWriter.
std::optional<Verdict> refuse_set(const Register* known, const Set& op, HybridTime at,
                                  const Turn& turn) {
  const Version version = known == nullptr ? Version{} : known->version;
  const HybridTime known_at = known == nullptr ? HybridTime{} : known->at;
  if (op.mode == SetMode::kVersion) {
    if (version != op.expected) return Superseded{version, known_at};
    return std::nullopt;
  }
  const std::int64_t latest = op.at ? to_ms(turn.latest()) : at.wall_ms;
  const std::int64_t ahead = std::max(at.wall_ms, latest) - latest;
  if (op.at && ahead > limits::kHybridAheadMax.count()) {
    return Refused{{Errc::kInvalidArgument,
                    base::format("register '{}': the time given is {} ms ahead of the store; the "
                                 "most is {}. Check the writer's clock and the store's.",
                                 op.name, ahead, limits::kHybridAheadMax.count())}};
  }
  if (known != nullptr && at <= known_at) return Superseded{version, known_at};
  return std::nullopt;
}

bool keeps(const Set& op) { return op.expiry.kind == Expiry::Kind::kKeep; }

// When a register goes that nobody gave an end: after the tenant's default, or never.
Time usual_end(const Turn& turn, const TenantShare& share) {
  if (share.ttl_default.count() == 0) return Time::max();
  const bool bounded = share.ttl_max.count() != 0;
  return turn.now() + (bounded ? std::min(share.ttl_default, share.ttl_max) : share.ttl_default);
}

Time end_of_set(Turn& turn, const Set& op, const Register* known) {
  const bool says_nothing =
      op.expiry.kind == Expiry::Kind::kNever || (keeps(op) && known == nullptr);
  if (says_nothing) return usual_end(turn, turn.state().tenants.of(op.name).share);
  return end_of(op.expiry, known, turn);
}

Verdict set_guarded(Turn& turn, const Set& op, base::Hash128 key, const Register* known) {
  const HybridTime at =
      op.mode == SetMode::kLastWriter && op.at ? *op.at : tick(turn.state().hybrid, turn.now());
  if (auto refusal = refuse_set(known, op, at, turn)) return *std::move(refusal);
  const Time end = end_of_set(turn, op, known);
  const Result<Version> version = write(turn, key, known, {op.name, op.value, at, end, keeps(op)});
  if (!version) return Refused{version.error()};
  return Registered{*version, at};
}

// --- answers -------------------------------------------------------------------------------------

Held held(Turn& turn, const Register* known, bool tells) {
  Held answer;
  if (known == nullptr) return answer;
  if (tells) turn.tell(answer.value.emplace(known->value()).size());
  answer.version = known->version;
  answer.expires_at = known->expires_at;
  return answer;
}

// H5
bool may_set(SetMode mode, const Register* known) {
  if (mode == SetMode::kAlways) return true;
  if (mode == SetMode::kPresent) return known != nullptr;
  return known == nullptr || (!known->stays() && mutant(Mutant::kAbsentOverwrites));
}

Refused no_sum(const char* why) { return Refused{{Errc::kPreconditionFailed, why}}; }

}  // namespace

const Register* find_register(const State& state, base::Hash128 name, Time now) {
  const auto* found = state.registers.find(name);
  if (found == nullptr || (*found)->expires_at <= now) return nullptr;  // H4
  return found->get();
}

Verdict run(Turn& turn, const Set& op, const RegisterHash& hash) {
  const Register* known = find_register(turn.state(), hash.key, turn.now());
  if (op.mode == SetMode::kVersion || op.mode == SetMode::kLastWriter) {
    return set_guarded(turn, op, hash.key, known);
  }
  Held answer = held(turn, known, op.tell_value);
  if (!may_set(op.mode, known)) return answer;
  const HybridTime at = tick(turn.state().hybrid, turn.now());
  const Time end = end_of_set(turn, op, known);
  const Result<Version> version =
      write(turn, hash.key, known, {op.name, op.value, at, end, keeps(op)});
  if (!version) return Refused{version.error()};
  answer.applied = true;
  answer.version = *version;
  answer.expires_at = *version == Version{0} ? Time::max() : end;
  return answer;
}

Verdict run(Turn& turn, const hapax::Get& op, const RegisterHash& hash) {
  const Register* known = find_register(turn.state(), hash.key, turn.now());
  Held answer = held(turn, known, op.tell_value);
  answer.applied = known != nullptr;
  return answer;
}

Verdict run(Turn& turn, const Unset& op, const RegisterHash& hash) {
  const Register* known = find_register(turn.state(), hash.key, turn.now());
  Held answer;
  if (known == nullptr) return answer;
  if (op.tell_value) turn.tell(answer.value.emplace(known->value()).size());
  turn.emit(RegisterGone{hash.key});
  answer.applied = true;
  return answer;
}

Verdict run(Turn& turn, const Expire& op, const RegisterHash& hash) {
  const Register* known = find_register(turn.state(), hash.key, turn.now());
  Held answer = held(turn, known, false);
  if (known == nullptr) return answer;
  const Time end = end_of(op.expiry, known, turn);
  const bool says_nothing = end == Time::max() && known->stays();
  if (says_nothing || !may_expire(op.only_if, known->expires_at, end)) return answer;
  const Tenant& tenant = turn.state().tenants.of(op.name);
  if (end != known->expires_at) {
    if (auto late = check_end(turn, tenant, op.name, end)) return Refused{*std::move(late)};
  }
  answer.applied = true;
  if (end <= turn.now()) {
    turn.emit(RegisterGone{hash.key});
    answer.version = Version{0};
    answer.expires_at = Time::max();
    return answer;
  }
  if (end != known->expires_at) turn.emit(RegisterExpires{hash.key, end});
  answer.expires_at = end;
  return answer;
}

Verdict run(Turn& turn, const Add& op, const RegisterHash& hash) {
  const Register* known = find_register(turn.state(), hash.key, turn.now());
  const auto former =
      known == nullptr ? std::optional<std::int64_t>(0) : base::whole_number(known->value());
  if (!former) return no_sum("value is not an integer or out of range");
  std::int64_t sum = 0;
  if (__builtin_add_overflow(*former, op.by, &sum)) {
    return no_sum("increment or decrement would overflow");
  }
  Held answer = held(turn, known, false);
  if (known == nullptr) {
    answer.expires_at = usual_end(turn, turn.state().tenants.of(op.name).share);
  }
  const std::string text = std::to_string(sum);
  const HybridTime at = tick(turn.state().hybrid, turn.now());
  const Result<Version> version =
      write(turn, hash.key, known, {op.name, text, at, answer.expires_at, true});
  if (!version) return Refused{version.error()};
  answer.applied = true;
  answer.version = *version;
  answer.number = sum;
  return answer;
}

}  // namespace hapax::core
