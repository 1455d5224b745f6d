#include "machine/ceilings.h"

#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/clock.h"
#include "machine/json.h"

namespace millrace {
namespace {

TEST(Loops, EveryLoopThisCpuHasRuns) {
  constexpr size_t kBytes = 8 * kReadUnit;
  const std::unique_ptr<void, void (*)(void*)> data(std::aligned_alloc(64, kBytes), std::free);
  for (const ReadLoop& loop : read_loops())
    if (cpu_has(loop.isa)) loop.run(static_cast<const std::byte*>(data.get()), kBytes);
  for (const MacLoop& loop : mac_loops())
    if (cpu_has(loop.isa)) loop.run(10);
}

TEST(CeilingsThreads, AreMeasuredForEveryIsaOfTheCpu) {
  const Machine machine = find_machine();
  const Ceilings c = measure_ceilings(machine, Effort::quick);
  EXPECT_GT(c.read_gbps_one, 0.1);
  EXPECT_GE(c.read_gbps_all, 0.1);
  EXPECT_EQ(c.n_lanes, machine.n_cpus);
  EXPECT_EQ(c.quiet, c.noise.empty());
  EXPECT_NE(c.rate(MacType::f32, Isa::generic), nullptr);
  for (Isa isa : {Isa::avx2, Isa::avx512})
    EXPECT_EQ(c.rate(MacType::f32, isa) != nullptr, machine.has(isa)) << name_of(isa);
  EXPECT_EQ(c.best_rate(MacType::bf16) != nullptr, machine.has(Isa::avx512_bf16));
  for (const Rate& rate : c.rates) EXPECT_GT(rate.gmacs_one, 0.1) << name_of(rate.isa);
}

TEST(CeilingsThreads, AProbeGivesTheRatesThatWereAskedFor) {
  const Machine machine = find_machine();
  Team team(2);
  CeilingProbe probe(machine, team);
  const MacType types[] = {MacType::f32};
  const Ceilings c = probe.now(types);
  EXPECT_EQ(c.n_lanes, 2);
  EXPECT_GT(c.read_gbps_all, 0.1);
  ASSERT_NE(c.rate(MacType::f32, Isa::generic), nullptr);
  EXPECT_GT(c.rate(MacType::f32, Isa::generic)->gmacs_all, 0.1);
  EXPECT_EQ(c.rate(MacType::f32, Isa::avx2) != nullptr, machine.has(Isa::avx2));
  EXPECT_EQ(c.best_rate(MacType::i8), nullptr);
}

Ceilings sample() {
  Ceilings c;
  c.n_lanes = 2;
  c.read_gbps_one = 15.5;
  c.read_gbps_all = 29.25;
  c.read_loop = "avx2, 8 streams";
  c.rates = {{MacType::i8, Isa::avx2, 100, 200}, {MacType::i8, Isa::avx512_vnni, 350, 700}};
  c.barrier_ns = 170;
  c.quiet = false;
  c.noise = "not quiet: other processes used 1.00 CPUs";
  return c;
}

TEST(Ceilings, BestRateIsTheFastestOfItsType) {
  const Ceilings c = sample();
  ASSERT_NE(c.best_rate(MacType::i8), nullptr);
  EXPECT_EQ(c.best_rate(MacType::i8)->isa, Isa::avx512_vnni);
  EXPECT_EQ(c.best_rate(MacType::f32), nullptr);
  EXPECT_EQ(c.rate(MacType::i8, Isa::avx2)->gmacs_all, 200);
}

TEST(Ceilings, SurviveJson) {
  const Ceilings before = sample();
  const auto after = parse_ceilings(to_json(before));
  ASSERT_TRUE(after.ok()) << after.status().message();
  EXPECT_EQ(to_json(after.value()), to_json(before));
}

TEST(Ceilings, CorruptJsonIsAStatus) {
  const std::string good = to_json(sample());
  for (size_t cut : {size_t{0}, size_t{1}, good.size() / 2, good.size() - 1})
    EXPECT_EQ(parse_ceilings(good.substr(0, cut)).status().code(), Code::corrupt);
  for (const char* text : {"null", "[]", "{}", R"({"n_lanes":"2"})", R"({"n_lanes":0})",
                           R"({"n_lanes":1,"barrier_ns":0,"read_gbps_one":1,"read_gbps_all":1})",
                           R"({"n_lanes":1,"barrier_ns":0,"read_gbps_one":1,"read_gbps_all":1,
                               "rates":[{"type":"i9","isa":"avx2","gmacs_one":1,"gmacs_all":1}]})"})
    EXPECT_EQ(parse_ceilings(text).status().code(), Code::corrupt) << text;
}

TEST(Noise, QuietMachinesHaveNoReason) {
  EXPECT_EQ(why_not_quiet(Noise{.others = 0.01, .stolen = 0.01, .load_average = 9}, 2), "");
}

TEST(Noise, EveryReasonIsNamed) {
  const std::string why =
      why_not_quiet(Noise{.others = 1, .stolen = 0.5, .n_throttled = 3, .spread = 0.5}, 2);
  EXPECT_TRUE(why.starts_with("not quiet: "));
  for (const char* part : {"other processes", "hypervisor", "throttled", "median"})
    EXPECT_NE(why.find(part), std::string::npos) << part;
}

// A host whose one CPU was busy, and taken by the hypervisor, for as many ticks as a test says.
class NoiseTest : public testing::Test {
 protected:
  NoiseTest() { std::filesystem::create_directories(root_ / "proc"); }
  ~NoiseTest() override { std::filesystem::remove_all(root_); }

  void set_ticks(int64_t busy, int64_t stolen) const {
    std::ofstream(root_ / "proc/stat") << "cpu0 " << busy << " 0 0 1000 0 0 0 " << stolen << "\n";
  }
  NoiseWatch watch() const { return {HostFiles(root_.string()), {0}}; }

  const std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) / ("millrace_noise_" + std::to_string(getpid()));
  const double tick_s_ = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
};

double own_cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The CPU was busy for five ticks, and this process for as long.
TEST_F(NoiseTest, OwnWorkIsNotNoise) {
  constexpr int64_t kTicks = 5;
  set_ticks(100, 7);
  const NoiseWatch watched = watch();
  for (const double end = own_cpu_s() + kTicks * tick_s_; own_cpu_s() < end;) {
  }
  set_ticks(100 + kTicks, 7);
  const Noise noise = watched.stop();
  EXPECT_EQ(noise.others, 0);
  EXPECT_EQ(noise.stolen, 0);
}

// An hour's ticks in the moment that a test takes, none of them this process's work.
TEST_F(NoiseTest, WorkOfOthersIsNoise) {
  set_ticks(100, 7);
  const NoiseWatch watched = watch();
  const auto hour = static_cast<int64_t>(3600 / tick_s_);
  set_ticks(100 + hour, 7 + hour);
  const Noise noise = watched.stop();
  EXPECT_GT(noise.others, 10);
  EXPECT_GT(noise.stolen, 10);
}

}  // namespace
}  // namespace millrace
