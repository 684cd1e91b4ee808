// How much memory this process may take: the machine's, or less where a control group (a container,
// a service) has a limit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hapax::host {

// What a store remembers with if nobody said how much: half of what there is, because snapshots,
// connections and the page cache need some, too, and never more than this.
inline constexpr std::uint64_t kMemoryBudgetMax = std::uint64_t{4} << 30;

struct MemoryBudget {
  std::uint64_t bytes = 0;
  std::string text;  // how it came about, for people
};

// From what the system says now.
[[nodiscard]] MemoryBudget find_memory_budget();
// The same for a machine of this much memory with its files /proc and /sys below `root`.
[[nodiscard]] MemoryBudget find_memory_budget(std::uint64_t machine_bytes,
                                              const std::filesystem::path& root);

// What is set, or what was found; `log` is told if that is less than the most.
[[nodiscard]] std::uint64_t memory_max_of(std::optional<std::uint64_t> set,
                                          const std::function<void(const std::string&)>& log);

// Of /proc/self/cgroup: the group in the one hierarchy of version 2, and in that of the memory
// controller of version 1.
struct ControlGroups {
  std::optional<std::string> unified;
  std::optional<std::string> memory;
};
[[nodiscard]] ControlGroups parse_control_groups(std::string_view text);
// Of memory.max or memory.limit_in_bytes; nullopt: none, or not a number.
[[nodiscard]] std::optional<std::uint64_t> parse_memory_limit(std::string_view text);

}  // namespace hapax::host
