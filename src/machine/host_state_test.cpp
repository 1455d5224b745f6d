#include "machine/host_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace millrace {
namespace {

class HostStateTest : public testing::Test {
 protected:
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) /
                                     ("millrace_host_state_" + std::to_string(getpid()));

  void SetUp() override { std::filesystem::remove_all(root); }
  void TearDown() override { std::filesystem::remove_all(root); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text << "\n";
  }
};

TEST_F(HostStateTest, SharesAreOfTheTimeBetweenTwoReadings) {
  write("sys/devices/system/cpu/online", "0-1");
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2500000");
  write("proc/cpuinfo",
        "processor\t: 0\ncpu MHz\t\t: 1000\n\nprocessor\t: 1\ncpu MHz\t\t: 3100.5\n");
  write("proc/stat",
        "cpu  100 0 0 900 0 0 0 0 0 0\ncpu0 50 0 0 450 0 0 0 0 0 0\ncpu1 50 0 0 450 0 0 0 0 0 0");
  write("proc/loadavg", "0.52 0.58 0.59 1/467 1");
  write("proc/meminfo",
        "MemTotal: 2048 kB\nMemAvailable: 512 kB\nSwapTotal: 100 kB\nSwapFree: 60 kB");
  HostWatch watch{HostFiles(root.string())};
  EXPECT_DOUBLE_EQ(watch.now().use, 0.1);
  write(
      "proc/stat",
      "cpu  160 0 0 920 0 0 0 20 0 0\ncpu0 100 0 0 450 0 0 0 0 0 0\ncpu1 60 0 0 470 0 0 0 20 0 0");
  const HostState state = watch.now();
  EXPECT_DOUBLE_EQ(state.use, 0.6);
  EXPECT_DOUBLE_EQ(state.stolen, 0.2);
  ASSERT_EQ(state.cpus.size(), 2u);
  EXPECT_DOUBLE_EQ(state.cpus[0].use, 1);
  EXPECT_DOUBLE_EQ(state.cpus[0].mhz, 2500);
  EXPECT_DOUBLE_EQ(state.cpus[1].use, 0.2);
  EXPECT_DOUBLE_EQ(state.cpus[1].mhz, 3100.5);
  EXPECT_DOUBLE_EQ(state.load_15, 0.59);
  EXPECT_EQ(state.memory_bytes, size_t{2} << 20);
  EXPECT_EQ(state.memory_available_bytes, size_t{512} << 10);
  EXPECT_EQ(state.swap_used_bytes, size_t{40} << 10);
}

TEST_F(HostStateTest, AHostThatTellsNothingHasNothing) {
  write("x", "");
  HostWatch watch{HostFiles(root.string())};
  const HostState state = watch.now();
  EXPECT_EQ(state.use, 0);
  EXPECT_TRUE(state.cpus.empty());
}

}  // namespace
}  // namespace millrace
