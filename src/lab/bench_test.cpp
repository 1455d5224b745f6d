#include "lab/bench.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/matmul/op.h"
#include "lab/bytes.h"
#include "lab/measurement.h"
#include "lab/ring.h"
#include "lab/selftest.h"
#include "lab/toy_op_test.h"
#include "lab/verdict.h"

namespace millrace::lab {
namespace {

// A small machine: its "last-level cache" is 64 KiB, so rings are small too.
Machine small_machine() {
  Machine machine = find_machine();
  machine.llc_bytes = 64 << 10;
  return machine;
}

BenchOptions short_options() {
  BenchOptions options = quick_options();
  options.seconds = 0.02;
  options.mount.sample_seconds = 0.0005;
  return options;
}

class Bench : public testing::Test {
 protected:
  Machine machine = small_machine();
  std::unique_ptr<Target> target = cpu_target(machine, 2);
  std::atomic<bool> stop{false};
  Watch watch{stop, [](double, std::string_view) {}};

  Result<CaseRun> bench(std::vector<std::string_view> names) {
    return bench_case(*target, toy::item(std::move(names)), short_options(), watch);
  }
};

TEST_F(Bench, TimesEveryVariantAndATwinColdAndWarm) {
  auto run = bench({"twice", "again"});
  ASSERT_TRUE(run.ok()) << run.status().message();
  ASSERT_EQ(run->series.size(), 4u);
  ASSERT_EQ(run->twins.size(), 2u);
  for (const Series& s : run->series) {
    EXPECT_EQ(s.us.size(), run->find("twice", s.mode)->us.size());
    for (double us : s.us) EXPECT_GT(us, 0);
  }
  EXPECT_EQ(run->twins[0].us.size(), run->series[0].us.size());
  EXPECT_GT(run->mount.checked.n_whole, 0u);
}

TEST_F(Bench, WrongResultsAreNotTimed) {
  const auto failure = bench({"thrice"}).status();
  EXPECT_EQ(failure.code(), Code::wrong_result);
  EXPECT_NE(failure.message().find("thrice"), std::string_view::npos);
}

TEST_F(Bench, OtherBitsThanTheClassAreWrong) {
  EXPECT_EQ(bench({"twice", "nearly"}).status().code(), Code::wrong_result);
  EXPECT_EQ(bench({"twice", "again"}).status().code(), Code::ok);
}

// Alone, and so the first of its class: within the tolerance, and not what the witness gives.
TEST_F(Bench, TheWitnessDecidesWhereTheToleranceWouldPass) {
  const auto failure = bench({"nearly"}).status();
  EXPECT_EQ(failure.code(), Code::wrong_result);
  EXPECT_NE(failure.message().find("plain"), std::string_view::npos) << failure.message();
}

TEST_F(Bench, ResultsRememberedByAddressAreCaught) {
  toy::kept_by_pointer.clear();
  EXPECT_EQ(bench({"by_pointer"}).status().code(), Code::wrong_result);
}

TEST_F(Bench, ResultsRememberedInTheWorkspaceAreCaught) {
  EXPECT_EQ(bench({"by_workspace"}).status().code(), Code::wrong_result);
}

TEST_F(Bench, SkippingOutputsThatLookDoneIsCaught) {
  EXPECT_EQ(bench({"skips_written"}).status().code(), Code::wrong_result);
}

// What a case is compared on: its shape decides, not how fast the machine was.
TEST_F(Bench, CoverageIsFixed) {
  auto first = bench({"twice"}), again = bench({"twice"});
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first->mount.checked.n_rows, 64u);  // calls: this op has no rows
  EXPECT_EQ(again->mount.checked.n_rows, first->mount.checked.n_rows);
  EXPECT_EQ(again->mount.checked.n_entries, first->mount.checked.n_entries);
}

TEST_F(Bench, EveryTimedCallIsVerified) {
  toy::calls_left = 600;  // enough for the ring's verification, not for the rounds
  EXPECT_EQ(bench({"lazy"}).status().code(), Code::wrong_result);
}

TEST_F(Bench, AVariantsOwnErrorIsReported) {
  EXPECT_NE(bench({"fails"}).status().message().find("never works"), std::string_view::npos);
}

// A target whose device breaks at its first case.
class BreakingTarget : public Target {
 public:
  int n_mounts = 0, n_roofs = 0;

  std::string_view device() const override { return "cuda"; }
  int n_lanes() const override { return 1; }
  std::span<const std::string_view> modes() const override { return {}; }
  bool has(const Variant&) const override { return true; }
  size_t cache_bytes() const override { return 0; }
  Result<Roof> measure_roof(Effort) override {
    ++n_roofs;
    return Roof{};
  }
  Result<std::unique_ptr<Rig>> mount(const Op&, const Case&, std::span<const Variant* const>,
                                     const MountOptions&) override {
    ++n_mounts;
    return error(Code::device_lost, "an illegal address");
  }
};

struct Silent : Listener {
  void on_ceilings(std::string_view, const Roof&) override {}
  void on_case(const CaseRun&, const std::vector<Row>&) override {}
  void on_failure(const std::string&) override {}
};

TEST_F(Bench, ALostDeviceEndsTheSession) {
  BreakingTarget breaking;
  Progress progress("bench");
  Silent silent;
  const std::vector<PlanItem> plan = {toy::item({"twice"}), toy::item({"again"})};
  auto result = measure_all(breaking, plan, short_options(), stop, progress, silent);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->device_lost);
  EXPECT_FALSE(result->complete());
  EXPECT_EQ(result->failures.size(), 1u);
  EXPECT_EQ(breaking.n_mounts, 1);
  EXPECT_EQ(breaking.n_roofs, 1);  // and it is not asked for its ceilings again
}

// A CPU that says what a GPU would: round by round, and once too hot.
class LoadedTarget : public Target {
 public:
  explicit LoadedTarget(Target& target) : target_(target) {}
  std::string_view device() const override { return "cuda"; }
  int n_lanes() const override { return 1; }
  std::span<const std::string_view> modes() const override { return target_.modes(); }
  bool has(const Variant& variant) const override { return target_.has(variant); }
  size_t cache_bytes() const override { return target_.cache_bytes(); }
  Result<Roof> measure_roof(Effort effort) override { return target_.measure_roof(effort); }
  std::optional<GpuLoad> load() override {
    ++n_looks;
    return GpuLoad{100.0 + n_looks, n_looks == 3 ? kReasonHwThermal : kReasonPowerCap};
  }
  Result<std::unique_ptr<Rig>> mount(const Op& op, const Case& problem,
                                     std::span<const Variant* const> variants,
                                     const MountOptions& options) override {
    return target_.mount(op, problem, variants, options);
  }
  int n_looks = 0;

 private:
  Target& target_;
};

TEST_F(Bench, PowerAndThrottleReasonsAreKeptByRound) {
  LoadedTarget loaded(*target);
  Progress progress("bench");
  Silent silent;
  auto result =
      measure_all(loaded, {toy::item({"twice", "again"})}, short_options(), stop, progress, silent);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result->rows.size(), 4u);
  const Row& first = result->rows[0];
  EXPECT_EQ(first.power_w.size(), first.samples_us.size());
  EXPECT_EQ(first.power_w[0], 102);  // the first round wakes clocks and is not kept
  EXPECT_EQ(first.clock_reasons[1], static_cast<double>(kReasonHwThermal));
  EXPECT_TRUE(result->rows[1].power_w.empty()) << "of a round, not of a variant";
  const std::string why = result->why_not_quiet();
  EXPECT_NE(why.find("slowed itself down in 1 of "), std::string::npos) << why;
  EXPECT_NE(why.find("hardware thermal"), std::string::npos) << why;
}

// A runner whose device breaks at its first call.
class BreakingRunner : public Runner {
 public:
  int n_calls = 0;

  std::string_view device() const override { return "cuda"; }
  bool owns(const Variant&) const override { return true; }
  bool has(const Variant&) const override { return true; }
  std::span<const int> lane_counts() const override {
    static constexpr std::array kCounts = {1};
    return kCounts;
  }
  Status run(Instance&, const Variant&, int) override {
    ++n_calls;
    return error(Code::device_lost, "an illegal address");
  }
};

// The same cheats where cases are tested.
TEST_F(Bench, TheSelftestCatchesCheats) {
  const auto runner = cpu_runner(machine);
  const auto verdict = [&](std::string_view name, Suite suite) {
    toy::kept_by_pointer.clear();
    return test_variant(*runner, toy::kOp, *toy::variant(name), suite).verdict;
  };
  EXPECT_EQ(verdict("again", Suite::conformance), Verdict::passed);
  EXPECT_EQ(verdict("again", Suite::promise1), Verdict::failed);  // its class has `nearly` in it
  EXPECT_EQ(verdict("by_pointer", Suite::promise1), Verdict::failed);
  EXPECT_EQ(verdict("skips_written", Suite::promise1), Verdict::failed);
}

TEST_F(Bench, DecliningHostileCasesFails) {
  const Op op = {
      .name = "toy",
      .variants = toy::variants,
      .cases =
          [] {
            std::vector cases = {toy::make_case(8), toy::make_case(1000), toy::make_case(2000)};
            cases[0].hostile = true;
            cases[2].timed = true;
            return cases;
          },
      .validate = toy::kOp.validate,
      .key = toy::kOp.key};
  const auto runner = cpu_runner(machine);
  const Outcome evasive = test_variant(*runner, op, *toy::variant("evasive"), Suite::conformance);
  EXPECT_EQ(evasive.verdict, Verdict::failed);
  EXPECT_NE(evasive.failures.at(0).find("hostile"), std::string::npos);
  EXPECT_TRUE(test_variant(*runner, op, *toy::variant("twice"), Suite::conformance).ok());
}

TEST_F(Bench, ALostDeviceEndsTheSelftest) {
  BreakingRunner breaking;
  const Op two_cases = {.name = "toy",
                        .variants = toy::variants,
                        .cases =
                            [] {
                              return std::vector{toy::make_case(8), toy::make_case(9)};
                            },
                        .validate = toy::kOp.validate,
                        .key = toy::kOp.key};
  const Outcome outcome =
      test_variant(breaking, two_cases, *toy::variant("twice"), Suite::conformance);
  EXPECT_TRUE(outcome.device_lost);
  EXPECT_EQ(outcome.verdict, Verdict::failed);
  EXPECT_EQ(outcome.failures.size(), 1u);
  EXPECT_EQ(breaking.n_calls, 1);
}

TEST_F(Bench, AStopKeepsWholeRounds) {
  stop = true;
  auto run = bench({"twice"});
  ASSERT_TRUE(run.ok());
  EXPECT_FALSE(run->complete);
  EXPECT_TRUE(run->series.empty());
}

TEST_F(Bench, TheVariantsOfARealOpVerifyInTheRing) {
  BenchFilter filter;
  filter.ops = {"matmul"};
  filter.cases = {"q4_0_1x576x576", "q4_k_8x2048x1024"};
  auto plan = plan_bench(*target, filter);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  for (const PlanItem& item : *plan) {
    auto run = bench_case(*target, item, short_options(), watch);
    EXPECT_TRUE(run.ok()) << item.problem.name << ": " << run.status().message();
  }
}

TEST_F(Bench, UnknownNamesListWhatExists) {
  const auto message = [&](const BenchFilter& filter) {
    return std::string(plan_bench(*target, filter).status().message());
  };
  EXPECT_NE(message({{"rmsnrm"}, {}, {}}).find("rmsnorm"), std::string::npos);
  EXPECT_NE(message({{"rmsnorm"}, {"9x9"}, {}}).find("1x576_f32"), std::string::npos);
  EXPECT_NE(message({{"rmsnorm"}, {}, {"sse9"}}).find("avx2"), std::string::npos);
}

// A run as bench_case gives it, with made-up samples: "again" is twice as fast as "twice".
CaseRun made_up_run() {
  CaseRun run;
  run.op = &toy::kOp;
  run.problem = toy::make_case(1000);
  run.key = "n=1000";
  std::vector<double> slow, fast;
  Rng rng(5);
  for (int i = 0; i < 20; ++i) {
    slow.push_back(10 + 0.01 * rng.uniform());
    fast.push_back(5 + 0.01 * rng.uniform());
  }
  run.series = {{toy::variant("twice"), "cold", slow}, {toy::variant("again"), "cold", fast}};
  run.twins = {{toy::variant("twice"), "cold", slow}};
  return run;
}

TEST_F(Bench, VerdictsCarryIntervals) {
  const std::vector<CaseRun> runs = {made_up_run()};
  const auto verdicts = compare_variants(runs, "twice", "again");
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].comparison.speed, Speed::fast) << verdict_line(verdicts[0]);
  EXPECT_LT(verdicts[0].comparison.log_ratio.hi, -0.6);
  EXPECT_EQ(compare_variants(runs, "again", "twice")[0].comparison.speed, Speed::slow);
}

// Stored rows with made-up samples, and a verdict for each way they can lie.
TEST_F(Bench, StoredRunsAreJudgedByTheirSamples) {
  const auto row = [](double us, double spread, double noise, std::string mode = "cold") {
    Row out;
    out.op = "toy";
    out.variant = "twice";
    out.mode = std::move(mode);
    out.noise = noise;
    Rng rng(5);
    for (int i = 0; i < 40; ++i) out.samples_us.push_back(us * (1 + spread * rng.uniform()));
    out.us = median_interval(out.samples_us);
    return out;
  };
  const Row quiet = row(10, 0.001, 0.001);
  const auto verdict = [&](const Row& other) {
    const auto verdicts = compare_runs({quiet}, {other});
    EXPECT_EQ(verdicts.size(), 1u);
    return verdicts.empty() ? Speed::ambiguous : verdicts[0].comparison.speed;
  };
  EXPECT_EQ(verdict(row(5, 0.001, 0.001)), Speed::fast);
  EXPECT_EQ(verdict(row(20, 0.001, 0.001)), Speed::slow);
  EXPECT_EQ(verdict(row(10, 0.001, 0.001)), Speed::same);
  EXPECT_EQ(verdict(row(8, 0.5, 0.001)), Speed::ambiguous);    // spread around both
  EXPECT_EQ(verdict(row(10, 0.001, 0.8)), Speed::ambiguous);   // too noisy to be called the same
  EXPECT_EQ(verdict(row(9.5, 0.001, 0.8)), Speed::ambiguous);  // less than the noise
  EXPECT_TRUE(compare_runs({quiet}, {row(5, 0.001, 0.001, "warm")}).empty());
}

TEST_F(Bench, TheProfileNamesTheFastestOfTheClass) {
  const Profile profile = profile_of({made_up_run()}, *target);
  EXPECT_EQ(profile.variant_for("toy", "n=1000"), "again");
  CaseRun even = made_up_run();
  even.series[1].us = even.series[0].us;
  EXPECT_EQ(profile_of({even}, *target).size(), 0u);
}

TEST_F(Bench, RowsHoldTheirFloor) {
  const Floor floor{.read_bytes = 9e9, .write_bytes = 1e9, .i8_macs = 1e9};
  const Roof roof{10, "", {{Isa::avx2, "i8", 100}, {Isa::avx512_vnni, "i8", 400}}};
  const FloorTime cold = floor_time(floor, roof, true), warm = floor_time(floor, roof, false);
  EXPECT_DOUBLE_EQ(cold.us, 1e6);
  EXPECT_EQ(cold.bound, "bytes");
  EXPECT_DOUBLE_EQ(warm.us, 2500);
  EXPECT_EQ(warm.bound, "i8");
  EXPECT_EQ(floor_time(floor, Roof{}, true).us, 0);
}

// A host that is half as fast in two rounds: the share is of what each round allowed.
TEST_F(Bench, SharesAreOfTheRoundsOwnCeilings) {
  CaseRun run = made_up_run();
  run.problem.floor = {.read_bytes = 1e6};
  run.series.resize(1);
  run.series[0].us = {400, 400, 200};
  run.twins.clear();
  const Roof fast{10, "", {}}, slow{5, "", {}};
  EXPECT_DOUBLE_EQ(rows_of(run, *target, fast)[0].floor_percent, 25);
  EXPECT_FALSE(rows_of(run, *target, fast)[0].probed);
  run.probes = {{run.series[0].mode, {slow, slow, fast}}};
  const Row row = rows_of(run, *target, fast)[0];
  EXPECT_TRUE(row.probed);
  EXPECT_DOUBLE_EQ(row.floor_percent, 50);
  EXPECT_DOUBLE_EQ(row.floor_us, 100);
}

TEST(Ring, WeightsAreDistinctAndInputsRepeat) {
  Case problem;
  for (const Case& c : matmul::kOp.cases())
    if (c.name == "q4_0_1x576x576") problem = c;
  ASSERT_EQ(problem.name, "q4_0_1x576x576");
  const Variant* plain = &matmul::kOp.variants().back();
  auto ring = Ring::make(matmul::kOp, problem, std::span(&plain, 1), 7);
  ASSERT_TRUE(ring.ok()) << ring.status().message();
  Team team(2);
  ASSERT_TRUE(ring->grow(40, team).ok());
  size_t weight = 0;
  while (problem.ports[weight].role != Role::weight) ++weight;
  std::vector<uint64_t> hashes;
  for (size_t e = 0; e < ring->n_entries(); ++e)
    hashes.push_back(hash_of(static_cast<std::byte*>(ring->ports(e, "plain")[weight]),
                             bytes_of(problem.ports[weight])));
  std::sort(hashes.begin(), hashes.end());
  EXPECT_EQ(std::unique(hashes.begin(), hashes.end()), hashes.end());
}

}  // namespace
}  // namespace millrace::lab
