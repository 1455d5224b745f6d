// millrace selftest: conformance, promise 1 and the timed shapes of every variant this host can
// run.
#include "lab/selftest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/progress.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
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

std::vector<Outcome> run_steps(lab::Runner& runner, const Op* only, bool table,
                               const std::atomic<bool>& stop) {
  const auto tests = lab::variant_tests(runner, only);
  Progress progress("selftest");
  std::vector<Outcome> outcomes;
  if (table) print_header();
  for (const auto& test : tests) {
    if (stop || (!outcomes.empty() && outcomes.back().device_lost)) break;
    progress.at(static_cast<double>(outcomes.size()) / static_cast<double>(tests.size()),
                fmt::format("{}/{} {}", test.op->name, test.variant->name, name_of(test.suite)));
    outcomes.push_back(test_variant(runner, *test.op, *test.variant, test.suite));
    progress.clear();
    if (table) print_outcome(outcomes.back());
  }
  return outcomes;
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
  const Op* only = options.op.empty() ? nullptr : op_named(options.op);
  if (only == nullptr && !options.op.empty()) {
    fmt::print(stderr, "millrace: no op '{}'; the ops are {}\n", options.op, op_names());
    return kUsage;
  }
  const Machine machine = find_machine();
  auto runner = lab::make_runner(options.device, machine);
  if (!runner.ok()) return fail(runner.status());
  if (lab::variant_tests(**runner, only).empty())
    return fail(error(Code::unavailable, "{} has no variant for {}",
                      only == nullptr ? "this build" : only->name, options.device));
  const auto& stop = catch_interrupts();
  return report(run_steps(**runner, only, !options.json, stop), options, stop);
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
  command.option("--op", options->op, "Test only this op").type_name("OP");
  command.flag("--json", options->json, "Print JSON");
  command.runs([options] { return selftest(*options); });
}

}  // namespace millrace::cli
