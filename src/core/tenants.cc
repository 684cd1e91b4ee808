#include "core/tenants.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "core/state.h"
#include "core/text_bytes.h"

namespace hapax::core {

namespace {

// What a tenant could come to now if nobody else took anything.
std::uint64_t share_now(std::uint64_t max, std::uint64_t has, std::uint64_t used,
                        std::uint64_t all) {
  if (max != TenantShare::kWhatIsFree) return max;
  const std::uint64_t free = all - std::min(all, used);
  return (has + free) / 2;
}

TenantUse use_of(std::string_view name, const Tenant& tenant, const State& state) {
  TenantUse use;
  use.tenant = name;
  use.storage_bytes = tenant.storage;
  use.memory_bytes = tenant.memory;
  use.total_bytes = tenant.total();
  use.streams = tenant.streams;
  use.registers = tenant.registers;
  use.transactions_open = tenant.transactions_open;
  use.refused = tenant.refused;
  use.share = tenant.share;
  use.share.memory_max =
      share_now(use.share.memory_max, tenant.memory, state.memory_bytes(), state.memory_max);
  use.share.streams_max = share_now(use.share.streams_max, tenant.streams,
                                    state.stream_names.size(), limits::kStreamsMax);
  use.share.transactions_max = share_now(use.share.transactions_max, tenant.transactions_open,
                                         state.transactions_open, limits::kTransactionsOpenMax);
  return use;
}

}  // namespace

TenantShare Tenants::share_of(std::string_view tenant) const {
  return share_of_ ? share_of_(tenant) : TenantShare{};
}

Tenant& Tenants::look_up(std::string_view name) {
  const std::string_view frame = base::frame_of(name);
  if (frame.empty()) return nameless_;
  auto found = named_.find(frame);
  if (found == named_.end()) {
    found = named_.emplace(std::string(frame), Tenant{}).first;
    found->second.named = true;
    found->second.share = share_of(base::split_name(frame).tenant);
  }
  latest_ = &found->second;
  latest_frame_ = found->first;
  return *latest_;
}

void Tenants::set(ShareOf share_of_tenant) {
  share_of_ = std::move(share_of_tenant);
  nameless_.share = share_of("");
  for (auto& [frame, tenant] : named_) tenant.share = share_of(base::split_name(frame).tenant);
}

Load& Tenants::add(Tenant& tenant, Time end, Time now, Load load) {
  return add(tenant, GenerationKey::of(end, now), load);
}

Load& Tenants::add(Tenant& tenant, GenerationKey slice, Load load) {
  if (tenant.latest_load == nullptr || tenant.latest_slice != slice) {
    tenant.latest_load = &tenant.going[slice];
    tenant.latest_slice = slice;
    next_end_ = std::min(next_end_, slice.end());
  }
  Load& sum = *tenant.latest_load;
  sum.memory += load.memory;
  sum.storage += load.storage;
  tenant.memory += load.memory;
  tenant.storage += load.storage;
  return sum;
}

void Tenants::take(Tenant& tenant, Load& from, Load load) {
  HAPAX_ASSERT(from.memory >= load.memory, "what is taken back was added");
  HAPAX_ASSERT(from.storage >= load.storage, "what is taken back was added");
  from.memory -= load.memory;
  from.storage -= load.storage;
  tenant.memory -= load.memory;
  tenant.storage -= load.storage;
}

void Tenants::collect(Time now) {
  if (next_end_ > now) return;
  next_end_ = Time::max();
  const auto collect_one = [&](Tenant& tenant) {
    auto& going = tenant.going;
    tenant.latest_load = nullptr;
    while (!going.empty() && going.begin()->first.end() <= now) {
      take(tenant, going.begin()->second, Load(going.begin()->second));
      going.erase(going.begin());
    }
    if (!going.empty()) next_end_ = std::min(next_end_, going.begin()->first.end());
  };
  collect_one(nameless_);
  for (auto& [frame, tenant] : named_) collect_one(tenant);
}

std::vector<TenantUse> Tenants::list(const State& state) const {
  std::vector<TenantUse> uses;
  uses.reserve(named_.size() + 1);
  for_each([&](const std::string& frame, const Tenant& tenant) {
    uses.push_back(use_of(base::split_name(frame).tenant, tenant, state));
  });
  std::sort(uses.begin(), uses.end(),
            [](const TenantUse& a, const TenantUse& b) { return a.tenant < b.tenant; });
  return uses;
}

void charge_restored(State& state, GenerationKey slice, std::span<const OwnerCount> ids, Time now) {
  if (slice.end() <= now) return;
  for (const OwnerCount& one : ids) {
    if (one.owner == 0 || one.owner > state.streams.size()) continue;
    const Stream* stream = state.streams[one.owner - 1].get();
    if (stream == nullptr) continue;
    state.tenants.add(*stream->tenant, slice, {.memory = one.count * kIdBytes});
  }
}

}  // namespace hapax::core
