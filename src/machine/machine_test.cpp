#include "machine/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "machine/cgroup.h"
#include "machine/cpu.h"
#include "machine/host_files.h"

namespace millrace {
namespace {

// A made-up host: files below a temporary folder.
class HostTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(testing::TempDir()) / (std::string("millrace_") + info->name());
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  void write_cpu(int cpu, const std::string& siblings, const std::string& llc_shared_by) {
    const std::string at = "sys/devices/system/cpu/cpu" + std::to_string(cpu);
    write(at + "/topology/thread_siblings_list", siblings);
    write_cache(at + "/cache/index0", "1", "Data", "48K", siblings);
    write_cache(at + "/cache/index1", "1", "Instruction", "32K", siblings);
    write_cache(at + "/cache/index2", "2", "Unified", "2M", siblings);
    write_cache(at + "/cache/index3", "3", "Unified", "16384K", llc_shared_by);
  }
  void write_cache(const std::string& at, const std::string& level, const std::string& type,
                   const std::string& size, const std::string& shared_by) {
    write(at + "/level", level);
    write(at + "/type", type);
    write(at + "/size", size);
    write(at + "/shared_cpu_list", shared_by);
  }
  HostFiles host() const { return HostFiles(root_.string()); }

  std::filesystem::path root_;
};

TEST(CpuList, ReadsRangesAndRefusesNonsense) {
  EXPECT_EQ(parse_cpu_list("0-2,5,7-8"), (std::vector<int>{0, 1, 2, 5, 7, 8}));
  EXPECT_EQ(parse_cpu_list("3"), std::vector<int>{3});
  EXPECT_TRUE(parse_cpu_list("").empty());
  EXPECT_TRUE(parse_cpu_list("3-1").empty());
  EXPECT_TRUE(parse_cpu_list("a").empty());
  EXPECT_TRUE(parse_cpu_list("1;2").empty());
  EXPECT_TRUE(parse_cpu_list("0-99999999999").empty());
}

TEST(ValueOf, WantsTheWholeKey) {
  const std::string text = "MemTotalExtra: 1\nMemTotal:  24 kB\nempty:\n";
  EXPECT_EQ(value_of(text, "MemTotal"), "24 kB");
  EXPECT_EQ(value_of(text, "empty"), "");
  EXPECT_FALSE(value_of(text, "absent").has_value());
}

TEST_F(HostTest, PinsOnePerCoreFirst) {
  for (int cpu : {0, 4}) write_cpu(cpu, "0,4", "0-1,4-5");
  for (int cpu : {1, 5}) write_cpu(cpu, "1,5", "0-1,4-5");
  for (int cpu : {2, 6}) write_cpu(cpu, "2,6", "2-3,6-7");
  const CpuTopology all = order_cpus(host(), {0, 1, 2, 4, 5, 6});
  EXPECT_EQ(all.cpus, (std::vector<int>{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(all.n_cores, 3);
  const CpuTopology some = order_cpus(host(), {0, 4, 5, 6});
  EXPECT_EQ(some.cpus, (std::vector<int>{0, 5, 6, 4}));
  EXPECT_EQ(some.n_cores, 3);
}

TEST_F(HostTest, CountsEveryLastLevelCacheTheCpusFill) {
  for (int cpu : {0, 4}) write_cpu(cpu, "0,4", "0-1,4-5");
  write_cpu(2, "2,6", "2-3,6-7");
  const CacheSizes one = find_caches(host(), {0, 4});
  EXPECT_EQ(one.l1d_bytes, size_t{48} << 10);
  EXPECT_EQ(one.l2_bytes, size_t{2} << 20);
  EXPECT_EQ(one.llc_bytes, size_t{16} << 20);
  EXPECT_EQ(find_caches(host(), {0, 2}).llc_bytes, size_t{32} << 20);
}

TEST_F(HostTest, CachesFallBackToCpuid) {
  const CacheSizes sizes = find_caches(host(), {0});
  EXPECT_GE(sizes.l1d_bytes, size_t{8} << 10);
  EXPECT_GE(sizes.llc_bytes, sizes.l2_bytes);
}

TEST_F(HostTest, TakesTheTightestOfTheGroupsAbove) {
  write("proc/self/cgroup", "0::/outer/inner");
  write("sys/fs/cgroup/outer/cpu.max", "150000 100000");
  write("sys/fs/cgroup/outer/inner/cpu.max", "max 100000");
  write("sys/fs/cgroup/outer/memory.max", "1073741824");
  write("sys/fs/cgroup/outer/memory.current", "805306368");
  write("sys/fs/cgroup/outer/memory.stat", "anon 1\ninactive_file 268435456");
  write("sys/fs/cgroup/outer/inner/memory.max", "max");
  // A group counts its own quota's periods alone, and the process waits for every one above it.
  write("sys/fs/cgroup/outer/cpu.stat", "nr_throttled 5");
  write("sys/fs/cgroup/outer/inner/cpu.stat", "nr_throttled 3");
  const CgroupLimits limits = find_cgroup_limits(host());
  EXPECT_DOUBLE_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.memory_bytes, size_t{1} << 30);
  EXPECT_EQ(limits.memory_free, size_t{1} << 29);
  EXPECT_EQ(limits.n_throttled, 8u);
}

TEST_F(HostTest, ReadsVersionOneGroups) {
  write("proc/self/cgroup", "4:memory:/box\n1:cpu,cpuacct:/gone\n0::/");
  write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "536870912");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.stat", "nr_periods 9\nnr_throttled 7");
  const CgroupLimits limits = find_cgroup_limits(host());
  EXPECT_DOUBLE_EQ(limits.cpus, 0.5);
  EXPECT_EQ(limits.memory_bytes, size_t{1} << 29);
  EXPECT_EQ(limits.n_throttled, 7u);
}

TEST_F(HostTest, NoGroupsNoLimits) {
  const CgroupLimits limits = find_cgroup_limits(host());
  EXPECT_EQ(limits.cpus, 0);
  EXPECT_EQ(limits.memory_bytes, SIZE_MAX);
}

TEST_F(HostTest, AQuotaShrinksTheTeamAndUnpinsIt) {
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/cpu.max", "50000 100000");
  write("proc/meminfo", "MemTotal: 2048 kB\nMemAvailable: 1024 kB");
  write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
  const Machine m = find_machine(root_.string());
  EXPECT_EQ(m.n_cpus, 1);
  EXPECT_DOUBLE_EQ(m.cpu_quota, 0.5);
  EXPECT_EQ(m.memory_bytes, size_t{2} << 20);
  EXPECT_EQ(m.memory_available_bytes, size_t{1} << 20);
  EXPECT_EQ(m.huge_pages, "madvise");
}

TEST(MachineTest, FindsThisHost) {
  const Machine m = find_machine();
  EXPECT_FALSE(m.cpu_name.empty());
  EXPECT_GE(m.n_cpus, 1);
  EXPECT_GE(m.n_cores, 1);
  EXPECT_TRUE(m.has(Isa::generic));
  EXPECT_GT(m.memory_bytes, m.memory_available_bytes);
  EXPECT_GT(m.memory_available_bytes, 0u);
  EXPECT_GE(m.llc_bytes, m.l1d_bytes);
  EXPECT_NE(m.gpus.empty(), m.gpu_problem.empty());
  EXPECT_EQ(m.has(Isa::sm80), !m.gpus.empty() && m.gpus.front().sm >= 80);
}

TEST(MachineTest, FingerprintIsOneStableLine) {
  const std::string line = fingerprint(find_machine());
  EXPECT_EQ(line, fingerprint(find_machine()));
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace millrace
