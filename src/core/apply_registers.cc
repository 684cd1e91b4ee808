// How facts and the passing of log time change registers.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/mutant.h"
#include "core/registers.h"

namespace hapax::core {

namespace {

using RegisterPtr = std::shared_ptr<const Register>;

std::uint64_t bytes_of(const Register& set) {
  return register_bytes(set.words.bytes(), set.expires_at);
}

void link(State& state, base::Hash128 name, const Register& set) {
  Tenant& tenant = state.tenants.of(set.name());
  ++tenant.registers;
  tenant.storage += bytes_of(set);
  tenant.register_bytes += bytes_of(set);
  state.grow(tenant, bytes_of(set));
  if (set.stays()) return;
  auto& ends = state.registers_end;
  ends.emplace_hint(ends.end(), set.expires_at, set.version, name);
}

void unlink(State& state, base::Hash128 name, const Register& set) {
  Tenant& tenant = state.tenants.of(set.name());
  --tenant.registers;
  tenant.storage -= bytes_of(set);
  tenant.register_bytes -= bytes_of(set);
  state.shrink(tenant, bytes_of(set));
  if (set.stays()) return;
  const std::size_t erased = state.registers_end.erase({set.expires_at, set.version, name});
  HAPAX_ASSERT(erased == 1, "every register that goes is listed by its end");
}

RegisterPtr known_at(const State& state, base::Hash128 name) {
  const RegisterPtr* known = state.registers.find(name);
  return known == nullptr ? nullptr : *known;
}

// R3: a snapshot may hold what is there, so it is replaced, never changed; null takes it out.
void replace(State& state, base::Hash128 name, RegisterPtr next) {
  if (const RegisterPtr known = known_at(state, name)) {
    unlink(state, name, *known);
    if (next == nullptr) state.registers.take(name);
  }
  if (next == nullptr) return;
  link(state, name, *next);
  state.registers.set(name, std::move(next));
}

void change(State& state, base::Hash128 name, RegisterPtr next, Undo* undo) {
  record(undo, [name, before = known_at(state, name), hybrid = state.hybrid,
                floor = state.version_floor](State& s) {
    replace(s, name, before);
    s.hybrid = hybrid;
    s.version_floor = floor;
  });
  replace(state, name, std::move(next));
}

void raise_floor(State& state, Version version) {
  state.version_floor = std::max(state.version_floor, version);
}

}  // namespace

std::uint64_t register_bytes(std::size_t text, Time expires_at) {
  constexpr std::uint64_t kSlot = 80;   // of the table, with what the allocator adds
  constexpr std::uint64_t kByEnd = 80;  // a node of registers_end
  return kSlot + sizeof(Register) + text + (expires_at == Time::max() ? 0 : kByEnd);
}

void add_register(State& state, base::Hash128 name, Register&& set) {
  HAPAX_ASSERT(!state.registers.contains(name), "a name has one register");
  replace(state, name, std::make_shared<const Register>(std::move(set)));
}

void apply_rest(State& state, const RegisterSet& fact, base::Where, Time, Undo* undo) {
  change(state, fact.hash,
         std::make_shared<const Register>(
             Register{Words<2>({fact.name, fact.value}), fact.version, fact.at, fact.expires_at}),
         undo);
  HybridTime seen = fact.at;
  seen.node = 0;
  state.hybrid = std::max(state.hybrid, seen);
  // H3: it may go without a fact.
  if (fact.expires_at != Time::max()) raise_floor(state, fact.version);
}

void apply_rest(State& state, const RegisterExpires& fact, base::Where, Time, Undo* undo) {
  const RegisterPtr known = known_at(state, fact.hash);
  HAPAX_ASSERT(known != nullptr, "a fact about a register finds it");
  if (undo == nullptr && base::mutant(base::Mutant::kExpiryNotReplayed)) return;
  Register changed = *known;
  changed.expires_at = fact.expires_at;
  change(state, fact.hash, std::make_shared<const Register>(std::move(changed)), undo);
  if (fact.expires_at != Time::max()) raise_floor(state, known->version);
}

void apply_rest(State& state, const RegisterGone& fact, base::Where, Time, Undo* undo) {
  const RegisterPtr known = known_at(state, fact.hash);
  HAPAX_ASSERT(known != nullptr, "a fact about a register finds it");
  change(state, fact.hash, nullptr, undo);
  raise_floor(state, known->version);
}

std::size_t collect_registers(State& state, Time now, std::size_t work_max) {
  std::size_t work = 0;
  for (; work < work_max && !state.registers_end.empty(); ++work) {
    const auto [end, version, name] = *state.registers_end.begin();
    if (end > now) break;
    replace(state, name, nullptr);
  }
  return work;
}

}  // namespace hapax::core
