// Registers as Redis' clients use them. Each name is used in one way only, so that a judge knows
// what may have happened to it (check_registers.cc).
#include <array>
#include <string_view>

#include "sim/workload.h"

namespace hapax::sim {

namespace {

Expiry after(std::uint64_t ms) {
  return {Expiry::Kind::kAfter, {}, Duration{static_cast<std::int64_t>(ms)}};
}

}  // namespace

void Workload::add_key_value(std::uint32_t index, SimRequest& request) {
  Client& client = clients_[index];
  const std::string_view value = request.keep(make_payload(index));
  const std::uint64_t span = 1 + client.random.below(4ULL * swarm_.lease_ms);
  switch (client.random.below(10)) {
    case 0:
    case 1:
      request.ops.emplace_back(Set{.name = "lock",
                                   .value = value,
                                   .mode = SetMode::kAbsent,
                                   .expiry = after(span),
                                   .tell_value = client.random.chance(1, 2)});
      break;
    case 2:
      request.ops.emplace_back(Set{.name = "brief", .value = value, .mode = SetMode::kAlways});
      break;
    case 3:
      request.ops.emplace_back(Expire{"brief", after(span), ExpireIf::kNever});
      break;
    case 4:
      request.ops.emplace_back(Add{"count", 1});
      break;
    case 5:
      request.ops.emplace_back(Unset{"brief", true});
      break;
    case 6:
    case 7:
      request.ops.emplace_back(Set{
          .name = "dated",
          .value = value,
          .mode = SetMode::kAlways,
          .expiry = {Expiry::Kind::kAt, wall_ + Duration{static_cast<std::int64_t>(span)}, {}}});
      break;
    default: {
      constexpr std::array<std::string_view, 4> kNames{"lock", "brief", "count", "dated"};
      request.ops.emplace_back(Get{kNames[client.random.below(kNames.size())]});
    }
  }
  if (client.random.chance(1, 4)) request.ops.emplace_back(Get{"lock"});
  if (client.random.chance(1, 4)) request.ops.emplace_back(Get{"dated"});
}

}  // namespace hapax::sim
