// millrace bench: verify, then time, every variant of every case that was asked for.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "kernels/pick.h"
#include "lab/report.h"
#include "lab/session.h"

namespace millrace::cli {
namespace {

struct Options {
  lab::BenchFilter filter;
  std::string device = "cpu";
  int threads = 0;
  double seconds = 0;
  bool json = false, quick = false, list = false;
};

int fail(const Status& status) {
  fmt::print(stderr, "millrace: {}\n", status.message());
  return status.code() == Code::not_found || status.code() == Code::invalid_argument ? kUsage
                                                                                     : kFailed;
}

class Printer : public lab::Listener {
 public:
  explicit Printer(bool table) : table_(table) {}

  void on_ceilings(std::string_view when, const lab::Roof& roof) override {
    if (table_ && roof.read_gbps > 0) fmt::print("{}", lab::ceilings_line(when, roof));
  }
  void on_case(const lab::CaseRun&, const std::vector<lab::Row>& rows) override {
    if (!table_) return;
    if (!headed_) fmt::print("{}", lab::table_header());
    headed_ = true;
    for (const auto& row : rows) fmt::print("{}", lab::table_line(row));
    std::fflush(stdout);
  }
  void on_failure(const std::string& message) override {
    fmt::print(stderr, "millrace: FAILED {}\n", message);
  }

 private:
  const bool table_;
  bool headed_ = false;
};

void print_list(const std::vector<lab::PlanItem>& plan, bool json) {
  auto rows = nlohmann::json::array();
  for (const auto& item : plan) {
    std::vector<std::string> variants;
    for (const Variant* v : item.variants) variants.emplace_back(v->name);
    if (json)
      rows.push_back({{"op", item.op->name},
                      {"case", item.problem.name},
                      {"key", item.key},
                      {"variants", variants}});
    else
      fmt::print("{:<12} {:<32} {}\n", item.op->name, item.problem.name, fmt::join(variants, ", "));
  }
  if (json) fmt::print("{}\n", rows.dump(2));
}

nlohmann::json to_json(const lab::SessionResult& result, const lab::Target& target,
                       const Machine& machine) {
  auto rows = nlohmann::json::array();
  for (const auto& row : result.rows) rows.push_back(lab::to_json(row));
  return {{"device", target.device()},
          {"machine", fingerprint(machine)},
          {"ceilings", lab::to_json(result.roof)},
          {"ceilings_before", lab::to_json(result.before)},
          {"ceilings_after", lab::to_json(result.after)},
          {"quiet", result.quiet()},
          {"complete", !result.interrupted},
          {"failures", result.failures},
          {"rows", rows}};
}

void print_notes(const lab::SessionResult& result) {
  if (result.raised) fmt::print("A row beat its floor, so the ceilings were measured again.\n");
  if (!result.quiet())
    fmt::print(
        "not quiet: the ceilings differ by {:.0f} % before and after this run; something "
        "else was running, and the percentages are not to be trusted\n",
        100 * result.spread());
}

int bench(const Options& options) {
  const Machine machine = find_machine();
  auto target = lab::make_target(options.device, machine, options.threads);
  if (!target.ok()) return fail(target.status());
  auto plan = lab::plan_bench(**target, options.filter);
  if (!plan.ok()) return fail(plan.status());
  if (options.list) {
    print_list(*plan, options.json);
    return 0;
  }
  lab::BenchOptions how = options.quick ? lab::quick_options() : lab::BenchOptions{};
  if (options.seconds > 0) how.seconds = options.seconds;
  const auto& stop = catch_interrupts();
  lab::Progress progress("bench");
  Printer printer(!options.json);
  auto result = lab::run_session(**target, *plan, how, stop, progress, printer);
  progress.clear();
  if (!result.ok()) return fail(result.status());
  if (options.json)
    fmt::print("{}\n", to_json(*result, **target, machine).dump(2));
  else
    print_notes(*result);
  if (result->interrupted) return kInterrupted;
  return result->failures.empty() ? 0 : kFailed;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("bench", "Verify kernels, then time them against this machine's ceilings");
  command->add_option("op", options->filter.ops, "Ops to measure; all when none is named");
  command->add_option("--case", options->filter.cases, "Cases, by name or shell pattern");
  command->add_option("--variant", options->filter.variants, "Variants");
  command->add_option("--device", options->device, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Lanes; as many as there are CPUs by default")
      ->check(CLI::Range(1, 1024));
  command->add_option("--seconds", options->seconds, "Time per case and mode")
      ->check(CLI::Range(0.01, 3600.0));
  command->add_flag("--quick", options->quick, "Fewer samples, less verification");
  command->add_flag("--list", options->list, "Say what would be measured, and stop");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &exit_code] { exit_code = bench(*options); });
}

}  // namespace millrace::cli
