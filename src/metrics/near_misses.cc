#include "metrics/near_misses.h"

#include <functional>

namespace hapax::metrics {

namespace {

std::uint64_t mixed(std::uint64_t hash, std::string_view text) {
  hash = (hash ^ std::hash<std::string_view>{}(text)) * 0x9e37'79b9'7f4a'7c15ULL;
  return hash ^ (hash >> 29);
}

std::uint64_t hash_of(const Append& append, IdScope scope) {
  const std::uint64_t hash = mixed(mixed(0, append.stream), append.id.value_or(""));
  return mixed(hash, scope == IdScope::kGroup ? append.group.value_or("") : std::string_view());
}

}  // namespace

void NearMisses::told(const Append& append, const Verdict& verdict, Time now) {
  const auto* duplicate = std::get_if<Duplicate>(&verdict);
  const bool by_id = duplicate != nullptr && duplicate->forgotten_after == 0;
  const bool fresh = std::holds_alternative<Appended>(verdict);
  if (!append.id || !(by_id || fresh)) return;
  const auto window = windows_.find(append.stream);
  if (window == windows_.end()) return;
  const std::uint64_t hash = hash_of(append, window->second.scope);
  if (!is_followed(hash)) return;
  const Duration span = window->second.span;
  const Time forgotten = by_id ? duplicate->expires_at : now + span;
  if (forgotten > Time::max() - span) return;
  const auto [place, added] = followed_.try_emplace(hash);
  const Followed before = place->second;
  place->second = {forgotten, forgotten + span};
  const bool returned = !added && fresh && now >= before.forgotten && now < before.over;
  if (returned) count_ += std::uint64_t{1} << halvings_;
  if (followed_.size() > kFollowedMax) thin_out(now);
}

void NearMisses::thin_out(Time now) {
  std::erase_if(followed_, [&](const auto& one) { return one.second.over <= now; });
  while (followed_.size() > kFollowedMax / 4 * 3) {
    ++halvings_;
    std::erase_if(followed_, [&](const auto& one) { return !is_followed(one.first); });
  }
}

}  // namespace hapax::metrics
