// What each tenant takes of the store. Counted by what follows from facts, so that asking costs
// nothing, whatever is stored; what a tenant may take is no part of the state and is told from
// outside, as the memory budget is.
//
// Ids, settled claims and results go without a fact, each at its time. They are counted by slices
// of time, and a slice goes as a whole.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hapax/store.h>

#include "base/tenant_frame.h"
#include "core/generation_key.h"
#include "core/owner_counts.h"
#include "core/string_map.h"

namespace hapax::core {

class State;

// What goes with time.
struct Load {
  std::uint64_t memory = 0;
  std::uint64_t storage = 0;
};

struct Tenant {
  bool named = false;  // others are there: it is not told how the whole store does
  TenantShare share;
  std::uint64_t memory = 0;   // rough, as State::memory_bytes()
  std::uint64_t storage = 0;  // of kept records and results in the journal, and of registers
  std::uint64_t streams = 0;  // but for those of the store
  std::uint64_t registers = 0;
  std::uint64_t register_bytes = 0;  // they are in `memory` and in `storage`
  std::uint64_t transactions_open = 0;
  std::uint64_t refused = 0;              // because of its share, since the start
  std::map<GenerationKey, Load> going{};  // of `memory` and `storage`: what goes when
  GenerationKey latest_slice{};           // the one of the latest add …
  Load* latest_load = nullptr;            // … and what it has; null: none

  [[nodiscard]] std::uint64_t total() const { return storage + memory - register_bytes; }
};

// A7: a tenant that is at its limits must be able to delete, and that is audited. So the lines of
// acts that only free something may go beyond storage_max, by as much as this.
inline constexpr std::uint64_t kAuditReserve = std::uint64_t{64} << 10;

// Names of the state are those on disk: that of its tenant is a part of each. Who wants to know
// more of it asks here.
//
// As its tenant knows it: what people are shown, and what limits of length count.
[[nodiscard]] inline std::string_view local_name(std::string_view name) {
  return base::split_name(name).name;
}
// Whether its tenant has a name.
[[nodiscard]] inline bool has_tenant(std::string_view name) {
  return !base::frame_of(name).empty();
}
// Audits: written by the store or its server.
[[nodiscard]] inline bool is_the_stores(std::string_view stream) {
  return local_name(stream).starts_with('$');
}

class Tenants {
 public:
  // Whose the name is. Stays where it is for the life of the state.
  [[nodiscard]] Tenant& of(std::string_view name) {
    if (base::from_outside(name)) return nameless_;
    if (latest_ != nullptr && name.starts_with(latest_frame_)) return *latest_;
    return look_up(name);
  }

  // For tenants that are known, and for those to come.
  void set(ShareOf share_of);

  // Something that goes at `end`. The same load taken from where it answers undoes it.
  Load& add(Tenant& tenant, Time end, Time now, Load load);
  static void take(Tenant& tenant, Load& from, Load load);
  // The same for what was restored.
  Load& add(Tenant& tenant, GenerationKey slice, Load load);
  // What is over goes. REQUIRES: nothing that add() answered is kept.
  void collect(Time now);

  // Of the store's own tenant. They go by themselves, and are not told among the others.
  [[nodiscard]] std::uint64_t own_registers() const {
    const auto found = named_.find(base::frame_for(base::kOwnTenant));
    return found == named_.end() ? 0 : found->second.registers;
  }

  // Calls visit(frame, tenant), in no particular order.
  template <class Visit>
  void for_each(Visit visit) const {
    visit(std::string(), nameless_);
    for (const auto& [frame, tenant] : named_) visit(frame, tenant);
  }
  [[nodiscard]] std::vector<TenantUse> list(const State& state) const;

 private:
  Tenant& look_up(std::string_view name);
  [[nodiscard]] TenantShare share_of(std::string_view tenant) const;

  Tenant nameless_;
  StringMap<Tenant> named_;  // by frame
  Tenant* latest_ = nullptr;
  std::string_view latest_frame_;
  ShareOf share_of_;
  Time next_end_ = Time::max();  // no slice ends before
};

// Counts the ids that were restored as those of their streams' tenants. Of a stream that is gone
// nobody knows whose it was.
void charge_restored(State& state, GenerationKey slice, std::span<const OwnerCount> ids, Time now);

}  // namespace hapax::core
