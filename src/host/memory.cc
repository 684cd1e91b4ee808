#include "host/memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include <sys/sysinfo.h>

#include "base/format.h"

namespace hapax::host {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Files of /proc and /sys say that they are empty: they are read up to their end.
std::string read_up_to_the_end(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The smallest limit of the group and of those it is in. One that is not visible from here, as
// those around a container are, says nothing.
std::optional<std::uint64_t> smallest_limit(const fs::path& mount, std::string_view group,
                                            std::string_view file) {
  std::optional<std::uint64_t> smallest;
  for (std::string path(group);; path.resize(path.find_last_of('/'))) {
    const auto limit =
        parse_memory_limit(read_up_to_the_end(mount.string() + path + "/" + std::string(file)));
    if (limit) smallest = std::min(*limit, smallest.value_or(*limit));
    if (path.find('/') == std::string::npos) return smallest;
  }
}

std::optional<std::uint64_t> control_group_limit(const fs::path& root) {
  const ControlGroups groups =
      parse_control_groups(read_up_to_the_end(root / "proc" / "self" / "cgroup"));
  const fs::path mount = root / "sys" / "fs" / "cgroup";
  std::optional<std::uint64_t> limit;
  if (groups.unified) limit = smallest_limit(mount, *groups.unified, "memory.max");
  if (!groups.memory) return limit;
  const auto older = smallest_limit(mount / "memory", *groups.memory, "memory.limit_in_bytes");
  if (older) limit = std::min(*older, limit.value_or(*older));
  return limit;
}

std::string mebibytes(std::uint64_t bytes) { return base::format("{} MiB", bytes / kMiB); }

}  // namespace

ControlGroups parse_control_groups(std::string_view text) {
  ControlGroups groups;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string_view path = line.substr(second + 1);
    if (path.ends_with('/')) path.remove_suffix(1);
    if (controllers.empty()) groups.unified = path;
    const std::string list = "," + std::string(controllers) + ",";
    if (list.find(",memory,") != std::string::npos) groups.memory = path;
  }
  return groups;
}

std::optional<std::uint64_t> parse_memory_limit(std::string_view text) {
  std::uint64_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc{} || (!rest.empty() && rest != "\n")) return std::nullopt;
  return limit;
}

MemoryBudget find_memory_budget(std::uint64_t machine_bytes, const fs::path& root) {
  const std::uint64_t limit = control_group_limit(root).value_or(machine_bytes);
  const std::uint64_t all = std::min(machine_bytes, limit);
  MemoryBudget budget{std::max(all / 2, kMiB), {}};
  if (budget.bytes >= kMemoryBudgetMax) {
    budget.bytes = kMemoryBudgetMax;
    budget.text = mebibytes(budget.bytes) + ", the most that is taken if nothing is set";
    return budget;
  }
  budget.text =
      mebibytes(budget.bytes) + ", half of the " + mebibytes(all) + " that " +
      (limit < machine_bytes ? "the control group of this process may take" : "this machine has");
  return budget;
}

MemoryBudget find_memory_budget() {
  // Not /proc/meminfo, which a service may be kept from seeing.
  struct sysinfo machine {};
  const bool told = ::sysinfo(&machine) == 0;
  const std::uint64_t bytes =
      told ? std::uint64_t{machine.totalram} * machine.mem_unit : 2 * kMemoryBudgetMax;
  return find_memory_budget(bytes, "/");
}

std::uint64_t memory_max_of(std::optional<std::uint64_t> set,
                            const std::function<void(const std::string&)>& log) {
  if (set) return *set;
  const MemoryBudget found = find_memory_budget();
  if (found.bytes < kMemoryBudgetMax) log("memory_max is not set: " + found.text);
  return found.bytes;
}

}  // namespace hapax::host
