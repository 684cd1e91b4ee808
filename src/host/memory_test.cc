#include "host/memory.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/temporary_folder_test.h"

namespace hapax::host {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST(ControlGroups, AreReadInBothVersions) {
  const ControlGroups unified = parse_control_groups("0::/system.slice/hapax.service\n");
  EXPECT_EQ(unified.unified, "/system.slice/hapax.service");
  EXPECT_FALSE(unified.memory);
  const ControlGroups both =
      parse_control_groups("12:cpu,cpuacct:/x\n4:hugetlb,memory:/docker/1\n0::/\n");
  EXPECT_EQ(both.unified, "");
  EXPECT_EQ(both.memory, "/docker/1");
  for (const char* nothing : {"", "\n", "no colon", "4:memory", "4:memoryless:/x\n"}) {
    const ControlGroups none = parse_control_groups(nothing);
    EXPECT_FALSE(none.unified || none.memory) << nothing;
  }
}

TEST(ControlGroups, ALimitIsANumberOrNone) {
  EXPECT_EQ(parse_memory_limit("134217728\n"), 128 * kMiB);
  EXPECT_EQ(parse_memory_limit("0"), 0U);
  for (const char* none : {"max\n", "", "\n", "-1", "12 34", "99999999999999999999\n"}) {
    EXPECT_FALSE(parse_memory_limit(none)) << none;
  }
}

class MemoryBudgetTest : public testing::Test {
 protected:
  void write(const std::string& path, std::string_view text) {
    const std::filesystem::path whole = root_.path() / path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  MemoryBudget find(std::uint64_t machine) { return find_memory_budget(machine, root_.path()); }

  const TemporaryFolder root_;
};

TEST_F(MemoryBudgetTest, IsHalfOfTheMachineAtMost4GiB) {
  EXPECT_EQ(find(2 * kGiB).bytes, kGiB);
  EXPECT_THAT(find(2 * kGiB).text, HasSubstr("1024 MiB, half of the 2048 MiB that this machine"));
  EXPECT_EQ(find(64 * kGiB).bytes, 4 * kGiB);
  EXPECT_THAT(find(64 * kGiB).text, HasSubstr("4096 MiB, the most"));
  EXPECT_EQ(find(0).bytes, kMiB);
}

TEST_F(MemoryBudgetTest, TheSmallestLimitAlongThePathCounts) {
  write("proc/self/cgroup", "0::/pod/box\n");
  write("sys/fs/cgroup/pod/box/memory.max", "max\n");
  EXPECT_EQ(find(2 * kGiB).bytes, kGiB);
  write("sys/fs/cgroup/pod/memory.max", "134217728\n");
  EXPECT_EQ(find(2 * kGiB).bytes, 64 * kMiB);
  EXPECT_THAT(find(2 * kGiB).text, HasSubstr("64 MiB, half of the 128 MiB that the control group"));
  write("sys/fs/cgroup/memory.max", "33554432\n");
  EXPECT_EQ(find(2 * kGiB).bytes, 16 * kMiB);
}

TEST_F(MemoryBudgetTest, SoDoesOneOfVersion1) {
  write("proc/self/cgroup", "5:memory:/docker/1\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(find(2 * kGiB).bytes, kGiB);
  write("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "268435456\n");
  EXPECT_EQ(find(2 * kGiB).bytes, 128 * kMiB);
}

TEST(MemoryBudget, IsSaidIfNothingIsSet) {
  std::string said;
  const auto log = [&said](const std::string& line) { said = line; };
  EXPECT_EQ(memory_max_of(7, log), 7U);
  EXPECT_EQ(said, "");
  EXPECT_EQ(memory_max_of({}, log), find_memory_budget().bytes);
  const MemoryBudget found = find_memory_budget();
  const bool less = found.bytes < kMemoryBudgetMax;
  EXPECT_EQ(said, less ? "memory_max is not set: " + found.text : "");
}

TEST(MemoryBudget, IsFoundHere) {
  const MemoryBudget budget = find_memory_budget();
  EXPECT_GE(budget.bytes, kMiB);
  EXPECT_LE(budget.bytes, kMemoryBudgetMax);
}

}  // namespace
}  // namespace hapax::host
