// millrace lab cliffs: predict where one more row costs much, measure it, draw it.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/progress.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/lab.h"
#include "cli/recorder.h"
#include "lab/cliffs.h"
#include "lab/posts/plot.h"
#include "lab/posts/site.h"
#include "lab/report.h"
#include "lab/warm_target.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CliffsOptions {
  lab::CliffOptions how;
  Recording recording;
  std::string device = "cpu", rows = "1-24", svg;
  int threads = 0;
  bool json = false, list = false;
};

Status parse_rows(const std::string& text, lab::CliffOptions& out) {
  const char *at = text.data(), *end = at + text.size();
  auto read = std::from_chars(at, end, out.first);
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-')
    read = std::from_chars(read.ptr + 1, end, out.last);
  if (read.ec == std::errc() && read.ptr == end && out.last > out.first) return {};
  return error(Code::invalid_argument, "--rows is FIRST-LAST, like 1-24");
}

double percent(double log_ratio) {
  return 100 * std::expm1(log_ratio);
}

std::string reasons_of(const std::vector<lab::RowEdge>& edges) {
  std::string out;
  for (const lab::RowEdge& edge : edges)
    out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", edge.kind, edge.why);
  return out;
}

void print_prediction(const lab::CliffPlan& plan) {
  fmt::print("{} {} to {}, {}; predicted from tiles, blocks, caches and the choice of variants:\n",
             plan.op->name, plan.points.front().problem.name, plan.points.back().problem.name,
             plan.mode);
  for (const lab::RowEdge& edge : plan.edges)
    fmt::print("  {:>4} to {:<4} {}: {}\n", edge.rows, edge.rows + 1, edge.kind, edge.why);
  if (plan.edges.empty()) fmt::print("  no cliff\n");
}

void print_result(const lab::CliffResult& result, double least_step) {
  std::vector<double> us;
  for (const lab::Metric& m : result.metrics) us.push_back(m.value.mid);
  fmt::print("\n{}  {} to {} us\n\n{:>5} {:<20} {:>9} {:>8} {:>18} {:>10} {}\n", lab::sparkline(us),
             lab::short_number(us.front()), lab::short_number(us.back()), "rows", "variant", "us",
             "step %", "beyond others %", "", "predicted");
  for (size_t i = 0; i < result.metrics.size(); ++i) {
    const lab::Metric& m = result.metrics[i];
    fmt::print("{:>5} {:<20} {:>9}", lab::rows_of(m), m.subject.variant,
               lab::short_number(m.value.mid));
    if (i > 0) {
      const lab::Step& s = result.steps[i - 1];
      fmt::print(" {:>+8.1f} {:>18} {:>10} {}", percent(s.log_step.mid),
                 s.log_excess.finite() ? fmt::format("[{:+.1f}, {:+.1f}]", percent(s.log_excess.lo),
                                                     percent(s.log_excess.hi))
                                       : "[too few samples]",
                 s.verdict, reasons_of(s.predicted));
    }
    fmt::print("\n");
  }
  size_t n_confirmed = 0, n_refuted = 0, n_open = 0, n_found = 0;
  for (const lab::Step& s : result.steps) {
    if (s.predicted.empty()) {
      n_found += s.verdict == "cliff" ? 1 : 0;
      continue;
    }
    (s.verdict == "cliff" ? n_confirmed : s.verdict == "none" ? n_refuted : n_open)++;
  }
  fmt::print(
      "\npredicted edges: {} are cliffs of {:.0f} % and more, {} are not, {} are undecided; cliffs "
      "that nothing predicted: {}\n",
      n_confirmed, 100 * least_step, n_refuted, n_open, n_found);
}

Json to_json(const std::vector<lab::RowEdge>& edges) {
  Json out = Json::array();
  for (const lab::RowEdge& edge : edges)
    out.push_back({{"rows", edge.rows}, {"kind", edge.kind}, {"why", edge.why}});
  return out;
}

Json to_json(const lab::CliffPlan& plan, const lab::CliffResult& result, int64_t run) {
  Json points = Json::array(), steps = Json::array();
  for (const lab::Metric& m : result.metrics)
    points.push_back({{"rows", lab::rows_of(m)},
                      {"case", m.subject.problem},
                      {"variant", m.subject.variant},
                      {"us", m.value.mid},
                      {"us_lo", m.value.lo},
                      {"us_hi", m.value.hi},
                      {"samples", m.samples.size()}});
  for (const lab::Step& s : result.steps)
    steps.push_back({{"rows", s.rows},
                     {"step_percent", percent(s.log_step.mid)},
                     {"excess_percent_lo", percent(s.log_excess.lo)},
                     {"excess_percent_hi", percent(s.log_excess.hi)},
                     {"verdict", s.verdict},
                     {"predicted", to_json(s.predicted)}});
  return {{"op", plan.op->name}, {"mode", plan.mode}, {"predicted", to_json(plan.edges)},
          {"points", points},    {"steps", steps},    {"run", run}};
}

Status draw(const std::string& file, const lab::CliffResult& result) {
  std::vector<const lab::Metric*> points;
  for (const lab::Metric& m : result.metrics) points.push_back(&m);
  return lab::write_whole(file, lab::draw_curve(points));
}

int measure(const CliffsOptions& options, const Machine& machine, lab::Target& target,
            const lab::CliffPlan& plan) {
  Recorder recorder;
  if (const Status status = recorder.begin(options.recording, "op", target.device(), machine);
      !status.ok())
    return fail(status);
  const auto& stop = catch_interrupts();
  Progress progress("cliffs");
  const auto result = lab::measure_cliffs(target, plan, options.how, stop,
                                          [&](double share) { progress.at(share, plan.op->name); });
  progress.clear();
  if (!result.ok()) {
    recorder.end("failed");
    return fail(result.status());
  }
  recorder.add_metrics(result.value().metrics);
  recorder.end(result.value().complete ? "done" : "interrupted");
  if (options.json)
    print_json(to_json(plan, result.value(), recorder.id()));
  else if (!result.value().metrics.empty())
    print_result(result.value(), options.how.least_step);
  if (!options.svg.empty() && !result.value().metrics.empty())
    if (const Status status = draw(options.svg, result.value()); !status.ok()) return fail(status);
  const bool stored = recorder.report(!options.json);
  if (!result.value().complete) return kInterrupted;
  return stored ? 0 : kFailed;
}

// Warm on a CPU unless cold is asked for: rings that outgrow the caches take long to make.
Result<std::unique_ptr<lab::Target>> target_for(const CliffsOptions& options,
                                                const Machine& machine) {
  if (options.device == "cpu" && options.how.mode != "cold")
    return lab::warm_cpu_target(machine, options.threads);
  return lab::make_target(options.device, machine, options.threads);
}

int cliffs(CliffsOptions options) {
  if (const Status status = parse_rows(options.rows, options.how); !status.ok())
    return fail(status);
  const Machine machine = find_machine();
  auto target = target_for(options, machine);
  if (!target.ok()) return fail(target.status());
  const auto plan = lab::plan_cliffs(**target, machine, options.how);
  if (!plan.ok()) return fail(plan.status());
  if (!options.json) print_prediction(plan.value());
  if (!options.list) return measure(options, machine, **target, plan.value());
  if (options.json) print_json(to_json(plan.value(), {}, 0));
  return 0;
}

}  // namespace

void add_lab_cliffs(Command& lab, const std::string& command_line) {
  auto options = std::make_shared<CliffsOptions>();
  options->recording.command = command_line;
  Command command = lab.add("cliffs", "Find where one more row costs a kernel much more");
  command.option("op", options->how.op, "The op, like matmul").type_name("OP").required();
  command.option("--case", options->how.problem, "Vary the rows of this case (default: the first)")
      .type_name("CASE");
  command.option("--rows", options->rows, "Rows to measure").type_name("FIRST-LAST").show_default();
  command
      .option("--variants", options->how.variants,
              "Choose among these variants alone (default: all, as a model would)")
      .type_name("NAME...");
  command.option("--mode", options->how.mode, "cold, warm; of a GPU: 'cold graph' and so on")
      .type_name("MODE");
  command.option("--device", options->device, "Where to measure")
      .one_of({"cpu", "cuda"})
      .show_default();
  command.option("-t,--threads", options->threads, "CPU threads (default: all)").at_least(0);
  command.option("--seconds", options->how.seconds, "About how long to measure")
      .real_range(0.01, 3600)
      .show_default();
  command.option("--step", options->how.least_step, "The least step that is a cliff, as a share")
      .real_range(0.005, 10)
      .show_default();
  command.option("--svg", options->svg, "Also draw the curve into this file").type_name("FILE");
  command.flag("--list", options->list, "Only print what is predicted");
  command.flag("--no-store", options->recording.no_store, "Do not store the run");
  command.option("--db", options->recording.db, "Database of the lab (default: the user's own)")
      .type_name("FILE");
  command.flag("--json", options->json, "Print JSON");
  command.footer(
      "A step counts as a cliff when, in the same rounds, it exceeds the steps beside it by more "
      "than --step and the noise. Example: millrace lab cliffs matmul --case q8_0_8x576x576");
  command.runs([options] { return cliffs(*options); });
}

}  // namespace millrace::cli
