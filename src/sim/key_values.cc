#include "sim/key_values.h"

#include <array>

namespace hapax::sim {

namespace {

Expiry after(std::uint64_t ms) {
  return {Expiry::Kind::kAfter, {}, Duration{static_cast<std::int64_t>(ms)}};
}

}  // namespace

void add_key_value(SimRequest& request, Random& random, const KeyValueTurn& turn) {
  const std::string_view value = turn.value;
  const std::uint64_t span = 1 + random.below(4ULL * turn.lease_ms);
  switch (random.below(10)) {
    case 0:
    case 1:
      request.ops.emplace_back(Set{.name = "lock",
                                   .value = value,
                                   .mode = SetMode::kAbsent,
                                   .expiry = after(span),
                                   .tell_value = random.chance(1, 2)});
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
      request.ops.emplace_back(
          Set{.name = "dated",
              .value = value,
              .mode = SetMode::kAlways,
              .expiry = {
                  Expiry::Kind::kAt, turn.wall + Duration{static_cast<std::int64_t>(span)}, {}}});
      break;
    default: {
      constexpr std::array<std::string_view, 4> kNames{"lock", "brief", "count", "dated"};
      request.ops.emplace_back(Get{kNames[random.below(kNames.size())]});
    }
  }
  if (random.chance(1, 4)) request.ops.emplace_back(Get{"lock"});
  if (random.chance(1, 4)) request.ops.emplace_back(Get{"dated"});
}

}  // namespace hapax::sim
