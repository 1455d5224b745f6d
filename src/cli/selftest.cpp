// millrace selftest: conformance, promise 1 and the timed shapes of every variant this host can
// run.
#include "lab/selftest.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

#include "base/progress.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "kernels/fusion.h"
#include "kernels/pick.h"

namespace millrace::cli {
namespace {

using lab::Outcome;

struct Options {
  std::string device = "cpu";
  std::string op;
  bool json = false;
};

void print_header() {
  fmt::print("{:<16} {:<18} {:<12} {:<13} {:>6} {:>8} {:>8}\n", "op", "variant", "suite", "result",
             "cases", "declined", "seconds");
}

void print_outcome(const Outcome& o) {
  fmt::print("{:<16} {:<18} {:<12} {:<13} {:>6} {:>8} {:>8.2f}\n", o.op, o.variant,
             name_of(o.suite), name_of(o.verdict), o.n_passed + static_cast<int>(o.failures.size()),
             o.n_declined, o.seconds);
  for (const auto& failure : o.failures) fmt::print("    {}\n", failure);
  std::fflush(stdout);
}

nlohmann::json to_json(const Outcome& o) {
  return {{"op", o.op},
          {"variant", o.variant},
          {"suite", name_of(o.suite)},
          {"result", name_of(o.verdict)},
          {"cases_passed", o.n_passed},
          {"cases_declined", o.n_declined},
          {"cases_left_to_bench", o.n_large},
          {"failures", o.failures},
          {"seconds", o.seconds}};
}

// What a selftest does, one row of its table each.
struct Step {
  std::string what;
  std::function<Outcome(lab::Runner&)> run;
};

// Of one op or fused kernel, or of all where the name is empty.
std::vector<Step> steps_for(const lab::Runner& runner, const std::string& name) {
  std::vector<Step> steps;
  const Op* only = name.empty() ? nullptr : op_named(name);
  if (only != nullptr || name.empty())
    for (const auto& test : lab::variant_tests(runner, only))
      steps.push_back(
          {fmt::format("{}/{} {}", test.op->name, test.variant->name, name_of(test.suite)),
           [test](lab::Runner& on) {
             return test_variant(on, *test.op, *test.variant, test.suite);
           }});
  for (const Fusion* fusion : lab::fusion_tests(runner, name))
    steps.push_back({fmt::format("{} fused", fusion->name),
                     [fusion](lab::Runner& on) { return test_fusion(on, *fusion); }});
  return steps;
}

std::vector<Outcome> run_steps(lab::Runner& runner, const std::vector<Step>& steps, bool table,
                               const std::atomic<bool>& stop) {
  Progress progress("selftest");
  std::vector<Outcome> outcomes;
  if (table) print_header();
  for (const Step& step : steps) {
    if (stop || (!outcomes.empty() && outcomes.back().device_lost)) break;
    progress.at(static_cast<double>(outcomes.size()) / static_cast<double>(steps.size()),
                step.what);
    outcomes.push_back(step.run(runner));
    progress.clear();
    if (table) print_outcome(outcomes.back());
  }
  return outcomes;
}

bool is_known(std::string_view name) {
  const auto all = fusions();
  return op_named(name) != nullptr ||
         std::any_of(all.begin(), all.end(), [&](const Fusion* f) { return f->name == name; });
}

int report(const std::vector<Outcome>& outcomes, const Options& options, bool interrupted) {
  const bool lost = !outcomes.empty() && outcomes.back().device_lost;
  int n_cases = 0, n_failed = 0, n_no_isa = 0, n_large = 0;
  auto rows = nlohmann::json::array();
  for (const Outcome& o : outcomes) {
    n_cases += o.n_passed;
    n_large += o.n_large;
    n_failed += o.ok() ? 0 : 1;
    n_no_isa += o.verdict == lab::Verdict::no_isa ? 1 : 0;
    rows.push_back(to_json(o));
  }
  if (options.json)
    print_json(nlohmann::json{{"device", options.device},
                              {"seed", lab::kSelftestSeed},
                              {"complete", !interrupted && !lost},
                              {"failed", n_failed},
                              {"outcomes", rows}});
  else
    fmt::print(
        "\n{} suites: {} failed, {} not run (this CPU lacks their instructions); {} cases passed, "
        "{} "
        "timed ones above {} MiB left to bench (seed {})\n",
        outcomes.size(), n_failed, n_no_isa, n_cases, n_large, lab::kLargeBytes >> 20,
        lab::kSelftestSeed);
  if (lost) {
    fmt::print(stderr,
               "millrace: the device failed and cannot be used by this process; the rest was not "
               "tested\n");
    return kFailed;
  }
  if (interrupted) {
    fmt::print(stderr, "millrace: interrupted; the rest was not tested\n");
    return kInterrupted;
  }
  return n_failed == 0 ? 0 : kFailed;
}

int selftest(const Options& options) {
  if (!options.op.empty() && !is_known(options.op)) {
    fmt::print(stderr, "millrace: no op '{}'; the ops are {}\n", options.op, op_names());
    return kUsage;
  }
  const Machine machine = find_machine();
  auto runner = lab::make_runner(options.device, machine);
  if (!runner.ok()) return fail(runner.status());
  const std::vector<Step> steps = steps_for(**runner, options.op);
  if (steps.empty())
    return fail(error(Code::unavailable, "{} has no variant for {}",
                      options.op.empty() ? "this build" : options.op, options.device));
  const auto& stop = catch_interrupts();
  return report(run_steps(**runner, steps, !options.json, stop), options, stop);
}

}  // namespace

void add_selftest(App& app) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add("selftest", "Test every kernel that this machine can run against its reference");
  command.option("--device", options->device, "cpu or cuda")
      .type_name("DEVICE")
      .one_of({"cpu", "cuda"})
      .show_default();
  command.option("--op", options->op, "Test only this op, or this fused kernel of a GPU")
      .type_name("OP");
  command.flag("--json", options->json, "Print JSON");
  command.runs([options] { return selftest(*options); });
}

}  // namespace millrace::cli
