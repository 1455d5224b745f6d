// NVML and the alerts against a library of ours that says what a file tells it to.
#include "machine/nvml.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "machine/alerts.h"

namespace millrace {
namespace {

constexpr const char* kHealthy =
    "count 1\n0.use 97\n0.memory_use 60\n0.memory 150000000000\n0.used 90000000000\n0.sm_mhz 1980\n"
    "0.max_sm_mhz 1980\n0.memory_mhz 3201\n0.max_memory_mhz 3201\n0.reasons 0\n0.temperature 61\n"
    "0.slowdown 92\n0.memory_temperature 70\n0.power_mw 512300\n0.limit_mw 700000\n"
    "0.ecc_corrected 3\n0.ecc_uncorrected 0\n0.rows_corrected 1\n0.rows_uncorrected 0\n"
    "0.remap_pending 0\n0.remap_failed 0\n0.gen 5\n0.max_gen 5\n0.width 16\n0.max_width 16\n"
    "0.replays 10\n0.processes 2\n0.recovery 0\n";

class NvmlTest : public testing::Test {
 protected:
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / ("millrace_nvml_" + std::to_string(getpid()));
  AlertWatch watch;
  double at_s = 0;

  void SetUp() override { setenv("FAKE_NVML", file.c_str(), 1); }
  void TearDown() override { std::filesystem::remove(file); }

  // What comes first wins.
  void say(const std::string& first) { std::ofstream(file) << first << kHealthy; }
  std::unique_ptr<Nvml> open() { return Nvml::open(MILLRACE_FAKE_NVML).value(); }

  // The rules that fire, with their levels, after a second.
  std::vector<std::string> alerts(Nvml& nvml) {
    at_s += 1;
    std::vector<std::string> out;
    for (const Alert& alert : watch.look({}, nvml.gpus(), nvml.faults(), at_s)) {
      out.push_back(std::string(name_of(alert.level)) + " " + alert.rule);
      EXPECT_FALSE(alert.remedy.empty()) << alert.what;
    }
    return out;
  }
  std::vector<std::string> alerts_for(const std::string& first) {
    say(first);
    const auto nvml = open();
    return alerts(*nvml);
  }
};

using Texts = std::vector<std::string>;

// Two GPUs that CUDA counts the other way round.
TEST_F(NvmlTest, TheLoadOfAGpuIsThatOfItsBus) {
  say("count 2\n0.bus 26\n1.bus 24\n1.power_mw 301500\n1.reasons 4\n");
  const auto nvml = open();
  EXPECT_EQ(nvml->find("0000:1A:00.0"), 0);
  ASSERT_EQ(nvml->find("0000:18:00.0"), 1);
  EXPECT_EQ(nvml->find("0000:19:00.0"), std::nullopt);
  EXPECT_EQ(nvml->load(1).power_w, 301.5);
  EXPECT_EQ(nvml->load(1).clock_reasons, kReasonPowerCap);
  say("count 2\n1.power_mw 99\n");
  EXPECT_EQ(nvml->load(1).clock_reasons, std::nullopt);
}

TEST_F(NvmlTest, WithoutADriverItSaysSo) {
  const auto nvml = Nvml::open("libno-such-library.so.9");
  EXPECT_EQ(nvml.status().code(), Code::unavailable);
  EXPECT_NE(nvml.status().message().find("no NVIDIA driver"), std::string::npos);
  EXPECT_EQ(Nvml::open("libm.so.6").status().code(), Code::unavailable);  // another library
}

TEST_F(NvmlTest, ReadsAGpu) {
  say("");
  const auto nvml = open();
  EXPECT_EQ(nvml->driver(), "580.95.05");
  const auto gpus = nvml->gpus();
  ASSERT_EQ(gpus.size(), 1u);
  const GpuState& gpu = gpus[0];
  EXPECT_EQ(gpu.use_percent, 97);
  EXPECT_EQ(gpu.memory_used_bytes, 90000000000u);
  EXPECT_EQ(gpu.max_sm_mhz, 1980);
  EXPECT_EQ(gpu.memory_temperature_c, 70);
  EXPECT_EQ(gpu.power_w, 512.3);
  EXPECT_EQ(gpu.ecc_corrected, 3u);
  EXPECT_EQ(gpu.rows_corrected, 1);
  EXPECT_EQ(gpu.remap_pending, false);
  EXPECT_EQ(gpu.max_pcie_width, 16);
  EXPECT_EQ(gpu.n_processes, 2);
  EXPECT_EQ(gpu.recovery_action, 0);
  EXPECT_TRUE(alerts(*nvml).empty());
}

TEST_F(NvmlTest, WhatAGpuDoesNotTellIsAbsent) {
  std::ofstream(file) << "count 1\n0.use 5\n";
  const auto nvml = open();
  const GpuState gpu = nvml->gpus().at(0);
  EXPECT_FALSE(gpu.power_w || gpu.ecc_corrected || gpu.remap_failed || gpu.recovery_action ||
               gpu.n_processes || gpu.memory_bytes);
  EXPECT_TRUE(alerts(*nvml).empty());
}

TEST_F(NvmlTest, AlertsOnWhatIsBroken) {
  EXPECT_EQ(alerts_for("0.recovery 1\n"), Texts{"critical recovery"});
  EXPECT_EQ(alerts_for("0.recovery 77\n"), Texts{"critical recovery"});
  EXPECT_EQ(alerts_for("0.remap_pending 1\n"), Texts{"critical remap"});
  EXPECT_EQ(alerts_for("0.remap_failed 1\n0.remap_pending 1\n"), Texts{"critical remap"});
  EXPECT_EQ(alerts_for("0.lost 1\n"), Texts{"critical lost"});
}

TEST_F(NvmlTest, AlertsOnWhatSpoilsAMeasurement) {
  EXPECT_EQ(alerts_for("0.reasons 8\n"), Texts{"warning throttle"});
  EXPECT_EQ(alerts_for("0.reasons 192\n"), Texts{"warning throttle"});
  EXPECT_EQ(alerts_for("0.temperature 88\n"), Texts{"warning heat"});
  EXPECT_EQ(alerts_for("0.memory_temperature 96\n"), Texts{"warning heat"});
  EXPECT_EQ(alerts_for("0.gen 3\n"), Texts{"warning link"});
  EXPECT_EQ(alerts_for("0.width 8\n"), Texts{"warning link"});
  EXPECT_EQ(alerts_for("0.gen 1\n0.use 0\n"), Texts{});  // idle links sleep
}

TEST_F(NvmlTest, OnlyNewMemoryErrorsCount) {
  say("0.ecc_uncorrected 7\n");
  const auto nvml = open();
  EXPECT_TRUE(alerts(*nvml).empty());  // old news
  say("0.ecc_uncorrected 9\n");
  EXPECT_EQ(alerts(*nvml), Texts{"critical ecc"});
  EXPECT_EQ(alerts(*nvml), Texts{"critical ecc"});  // it stays until the watch ends
}

TEST_F(NvmlTest, ReplaysCountWithinAMinute) {
  say("");
  const auto nvml = open();
  EXPECT_TRUE(alerts(*nvml).empty());
  say("0.replays 30\n");  // 20 a minute: a generation 5 link of 16 lanes may have 30.7
  EXPECT_TRUE(alerts(*nvml).empty());
  say("0.replays 42\n");
  EXPECT_EQ(alerts(*nvml), Texts{"warning link"});
  at_s += 61;
  EXPECT_TRUE(alerts(*nvml).empty());
}

TEST_F(NvmlTest, ThePowerCapCountsWhenItLasts) {
  say("");
  const auto nvml = open();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(alerts(*nvml).empty());
  say("0.reasons 4\n");
  EXPECT_TRUE(alerts(*nvml).empty());  // a moment
  alerts(*nvml);
  EXPECT_EQ(alerts(*nvml), Texts{"warning power"});
}

TEST_F(NvmlTest, AClockIsSlowByItsOwnHistory) {
  say("");
  const auto nvml = open();
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(alerts(*nvml).empty());
  say("0.sm_mhz 1790\n");
  EXPECT_TRUE(alerts(*nvml).empty());
  say("0.sm_mhz 1700\n");
  EXPECT_EQ(alerts(*nvml), Texts{"warning clock"});
  say("0.sm_mhz 345\n0.use 0\n");  // idle
  EXPECT_TRUE(alerts(*nvml).empty());
}

TEST_F(NvmlTest, XidsAreToldByWhoseFaultTheyAre) {
  say("xid 79\n");
  const auto nvml = open();
  EXPECT_EQ(alerts(*nvml), Texts{"critical xid"});
  EXPECT_EQ(alerts(*nvml), Texts{"critical xid"});
  say("xid 31\n");
  EXPECT_EQ(alerts(*nvml), (Texts{"critical xid", "info xid"}));
}

TEST(ClockReasons, HaveNames) {
  EXPECT_EQ(names_of_reasons(0), Texts{});
  EXPECT_EQ(names_of_reasons(0x5), (Texts{"idle", "power cap"}));
  EXPECT_EQ(names_of_reasons(0x440), (Texts{"hardware thermal", "0x400"}));
}

TEST(HostAlerts, LittleMemoryStolenTimeAndThrottling) {
  AlertWatch watch;
  HostState host;
  host.memory_bytes = size_t{1} << 30;
  host.memory_available_bytes = size_t{1} << 29;
  EXPECT_TRUE(watch.look(host, {}, {}, 0).empty());
  host.memory_available_bytes = size_t{1} << 24;
  host.stolen = 0.2;
  host.n_throttled = 3;
  EXPECT_EQ(watch.look(host, {}, {}, 1).size(), 3u);
}

}  // namespace
}  // namespace millrace
