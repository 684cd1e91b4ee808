// How facts and the passing of log time change transactions.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "core/commit.h"
#include "core/text_bytes.h"
#include "core/transactions.h"

namespace hapax::core {

namespace {

// What is derived from a transaction follows every change of it: leave() before, join() after.
void leave(State& state, const std::string& name, const Transaction& transaction) {
  state.transactions_due.erase({transaction.due(), name});
  Tenant& tenant = state.tenants.of(name);
  state.shrink(tenant, transaction.staged_bytes);
  if (!transaction.open) return;
  --state.transactions_open;
  --tenant.transactions_open;
}

void join(State& state, const std::string& name, const Transaction& transaction) {
  state.transactions_due.emplace(transaction.due(), name);
  Tenant& tenant = state.tenants.of(name);
  state.grow(tenant, transaction.staged_bytes);
  if (!transaction.open) return;
  ++state.transactions_open;
  ++tenant.transactions_open;
}

void close(Transaction& transaction) {
  transaction.open = false;
  transaction.staged.clear();
  transaction.staged_bytes = 0;
  transaction.staged_ops = 0;
}

void restore(State& state, const std::string& name, Transaction&& before) {
  const auto found = state.transactions.find(name);
  leave(state, name, found->second);
  found->second = std::move(before);
  join(state, name, found->second);
}

void remove(State& state, const std::string& name) {
  const auto found = state.transactions.find(name);
  leave(state, name, found->second);
  state.shrink(state.tenants.of(name), kNodeBytes + name.size());
  state.transactions.erase(found);
}

}  // namespace

const Transaction* find_transaction(const State& state, std::string_view name, Time now) {
  const auto found = state.transactions.find(name);
  if (found == state.transactions.end() || found->second.forgotten_at() <= now) return nullptr;
  return &found->second;
}

void add_transaction(State& state, std::string name, Transaction transaction) {
  const auto [slot, made] = state.transactions.emplace(std::move(name), std::move(transaction));
  HAPAX_ASSERT(made, "a name has one transaction");
  state.grow(state.tenants.of(slot->first), kNodeBytes + slot->first.size());
  join(state, slot->first, slot->second);
}

void collect_transactions(State& state, Time now, std::size_t work_max) {
  auto& due = state.transactions_due;
  for (; work_max > 0 && !due.empty() && due.begin()->first <= now; --work_max) {
    const std::string name = due.begin()->second;
    Transaction& transaction = state.transactions.find(name)->second;
    if (!transaction.open) {
      remove(state, name);
      continue;
    }
    leave(state, name, transaction);
    close(transaction);
    join(state, name, transaction);
  }
}

void apply_rest(State& state, const TransactionBegun& fact, base::Where, Time, Undo* undo) {
  Transaction begun;
  begun.epoch = fact.epoch;
  begun.open = true;
  begun.ends_at = fact.expires_at;
  record(undo, [next = state.next_epoch](State& s) { s.next_epoch = next; });
  state.next_epoch = std::max(state.next_epoch, fact.epoch.next());
  std::string name(fact.name);
  const auto found = state.transactions.find(name);
  if (found == state.transactions.end()) {
    add_transaction(state, name, std::move(begun));
    record(undo, [name = std::move(name)](State& s) { remove(s, name); });
    return;
  }
  Transaction before = found->second;
  restore(state, name, std::move(begun));
  record(undo, [name = std::move(name), before = std::move(before)](State& s) mutable {
    restore(s, name, std::move(before));
  });
}

void apply_rest(State& state, const TransactionStaged& fact, base::Where, Time, Undo* undo) {
  const auto found = state.transactions.find(fact.name);
  HAPAX_ASSERT(found != state.transactions.end() && found->second.open,
               "staging needs a transaction");
  Transaction& transaction = found->second;
  const std::uint64_t bytes = fact.ops.size();
  transaction.staged.emplace_back(fact.ops);
  transaction.staged_bytes += bytes;
  const std::uint64_t ops = staged_count(fact.ops);
  transaction.staged_ops += ops;
  Tenant& tenant = state.tenants.of(fact.name);
  state.grow(tenant, bytes);
  record(undo, [owner = &transaction, whose = &tenant, bytes, ops](State& s) {
    owner->staged.pop_back();
    owner->staged_ops -= ops;
    owner->staged_bytes -= bytes;
    s.shrink(*whose, bytes);
  });
}

void apply_rest(State& state, const TransactionEnded& fact, base::Where, Time now, Undo* undo) {
  const auto found = state.transactions.find(fact.name);
  HAPAX_ASSERT(found != state.transactions.end() && found->second.open, "only an open one ends");
  Transaction before = found->second;
  leave(state, found->first, found->second);
  close(found->second);
  found->second.committed = fact.committed;
  found->second.ends_at = now;
  join(state, found->first, found->second);
  record(undo, [name = found->first, before = std::move(before)](State& s) mutable {
    restore(s, name, std::move(before));
  });
}

}  // namespace hapax::core
