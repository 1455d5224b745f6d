// millrace bench: verify, then time, every variant of every case that was asked for; store the run.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/bench_chain.h"
#include "cli/bench_model.h"
#include "cli/bench_ops.h"
#include "cli/bench_self.h"
#include "cli/bench_serve.h"
#include "cli/bench_trace.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/open_model.h"
#include "cli/profile_file.h"
#include "cli/recorder.h"
#include "kernels/pick.h"
#include "lab/measurement.h"
#include "lab/report.h"
#include "lab/verdict.h"

namespace millrace::cli {
namespace {

struct Options {
  lab::BenchFilter filter;
  Recording recording;
  std::string device = "cpu", profile;
  std::vector<std::string> compare;
  BenchModelOptions model;
  std::string url;
  int threads = 0, n_twins = 0;
  double seconds = 0;
  bool json = false, quick = false, list = false, chain = false, spin = false;

  bool compares_variants() const { return !compare.empty(); }
};

// Rows as they are measured, and everything into the store.
class Printer : public lab::Listener {
 public:
  Printer(const std::vector<lab::PlanItem>& plan, bool table, Recorder& recorder)
      : widths_(lab::widths_of(plan)), table_(table), recorder_(recorder) {}

  void on_ceilings(std::string_view when, const lab::Roof& roof) override {
    if (table_) fmt::print("{}", lab::ceilings_line(when, roof));
    recorder_.add_ceilings(when, roof);
  }
  void on_case(const lab::CaseRun&, const std::vector<lab::Row>& rows) override {
    recorder_.add_rows(rows);
    if (!table_) return;
    if (!headed_) fmt::print("{}", lab::table_header(widths_));
    headed_ = true;
    for (const auto& row : rows) fmt::print("{}", lab::table_line(row, widths_));
    std::fflush(stdout);
  }
  void on_failure(const std::string& message) override {
    fmt::print(stderr, "millrace: FAILED {}\n", message);
  }

 private:
  const lab::TableWidths widths_;
  const bool table_;
  Recorder& recorder_;
  bool headed_ = false;
};

// What would be measured, and which variant a program built now would pick (MILLRACE_FORCE and the
// profile have their say).
Status print_list(const std::vector<lab::PlanItem>& plan, const Options& options,
                  const Machine& machine) {
  MILLRACE_ASSIGN(const Force force, Force::from_environment());
  MILLRACE_ASSIGN(const Profile profile, load_profile(machine));
  const PickFrom from{machine, profile, force,
                      options.device == "cuda" ? DeviceKind::cuda : DeviceKind::cpu};
  auto rows = nlohmann::json::array();
  const lab::TableWidths widths = lab::widths_of(plan);
  for (const auto& item : plan) {
    std::vector<std::string> variants;
    for (const Variant* v : item.variants) variants.emplace_back(v->name);
    const auto choice = pick(*item.op, lab::shape_of(item.problem).bytes, from);
    const std::string picked =
        choice.ok() ? fmt::format("{} ({})", choice.value().variant->name, choice.value().reason)
                    : std::string(choice.status().message());
    if (options.json)
      rows.push_back({{"op", item.op->name},
                      {"case", item.problem.name},
                      {"key", item.key},
                      {"variants", variants},
                      {"picked", picked}});
    else
      fmt::print("{:<{}} {:<{}} {}; picked: {}\n", item.op->name, widths.op, item.problem.name,
                 widths.problem, fmt::join(variants, ", "), picked);
  }
  if (options.json) print_json(rows);
  return {};
}

nlohmann::json to_json(const lab::Measurement& result,
                       const std::vector<lab::VerdictRow>& verdicts) {
  auto rows = nlohmann::json::array(), judged = nlohmann::json::array();
  for (const auto& row : result.rows) rows.push_back(lab::to_json(row));
  for (const auto& verdict : verdicts) judged.push_back(lab::to_json(verdict));
  return {{"ceilings", lab::to_json(result.roof)},
          {"ceilings_before", lab::to_json(result.before)},
          {"ceilings_after", lab::to_json(result.after)},
          {"not_quiet", result.why_not_quiet()},
          {"complete", result.complete()},
          {"failures", result.failures},
          {"rows", rows},
          {"verdicts", judged}};
}

void print_verdicts(const std::vector<lab::VerdictRow>& verdicts) {
  fmt::print("\n{}", lab::verdict_header());
  for (const auto& row : verdicts) fmt::print("{}", lab::verdict_line(row));
}

// The bare loops were disturbed more than the kernel beside them, or do more than it needs to.
void print_beaten_floors(const std::vector<lab::Row>& rows) {
  double most = 0;
  for (const lab::Row& row : rows)
    if (lab::beats_floor(row)) most = std::max(most, row.floor_percent);
  if (most > 0)
    fmt::print(
        "\nshares above 100 % (here up to {:.0f} %) mean \"at the floor\", no more: the bare "
        "loops\n"
        "that the floor is computed from were slower\n",
        most);
}

// The lines above were printed against the ceilings known then, unless each round had its own.
void print_notes(const lab::Measurement& result, const std::vector<lab::PlanItem>& plan) {
  const double change = lab::spread_of(result.before, result.roof);
  const bool probed = std::all_of(result.rows.begin(), result.rows.end(),
                                  [](const lab::Row& row) { return row.probed; });
  if (change > 0.02 && !probed) {
    const lab::TableWidths widths = lab::widths_of(plan);
    fmt::print(
        "\n{}the ceilings rose by up to {:.0f} % during the run; against the best of them:\n{}",
        result.raised ? "a row beat its floor, so the ceilings were measured again; " : "",
        100 * change, lab::table_header(widths));
    for (const auto& row : result.rows) fmt::print("{}", lab::table_line(row, widths));
  }
  print_beaten_floors(result.rows);
  if (const std::string why = result.why_not_quiet(); !why.empty())
    fmt::print("\n{}; do not quote these times{}\n", why,
               probed ? " (the shares are of loops timed in the same rounds)" : "");
}

Status write_profile(const Options& options, const lab::Measurement& result,
                     const lab::Target& target, const Machine& machine) {
  if (options.profile.empty()) return {};
  Profile profile = lab::profile_of(result.cases, target);
  profile.machine = fingerprint(machine);
  profile.written = utc_now();
  MILLRACE_ASSIGN(const std::string path, profile_to_write(options.profile));
  MILLRACE_TRY(profile.write(path));
  fmt::print(stderr, "millrace: {} choices differ from the default; written to {}\n",
             profile.size(), path);
  return {};
}

// Only what has both variants, and rounds enough for so many comparisons at once.
Status prepare_comparison(const Options& options, const lab::Target& target,
                          std::vector<lab::PlanItem>& plan, lab::BenchOptions& how) {
  std::erase_if(plan, [](const lab::PlanItem& item) { return item.variants.size() < 2; });
  if (plan.empty())
    return error(Code::not_found, "no case has both {} and {}", options.compare[0],
                 options.compare[1]);
  const auto n = static_cast<double>(plan.size() * target.modes().size());
  how.min_rounds = std::max(how.min_rounds, lab::least_samples(0.05 / n) + 4);
  return {};
}

int finish(const Options& options, const lab::Measurement& result, Recorder& recorder,
           const Status& profile) {
  const bool failed = !result.failures.empty();
  recorder.end(result.interrupted ? "interrupted" : failed ? "failed" : "done");
  if (result.device_lost)
    fmt::print(stderr,
               "millrace: the device failed and cannot be used by this process; the rest was not "
               "measured\n");
  if (!profile.ok()) fmt::print(stderr, "millrace: {}\n", profile.message());
  const bool stored = recorder.report(!options.json);
  if (result.interrupted) return kInterrupted;
  return failed || !stored || !profile.ok() ? kFailed : 0;
}

int measure(const Options& options, const Machine& machine, lab::Target& target,
            std::vector<lab::PlanItem> plan) {
  lab::BenchOptions how = options.quick ? lab::quick_options() : lab::BenchOptions{};
  if (options.seconds > 0) how.seconds = options.seconds;
  if (options.compares_variants())
    if (const Status status = prepare_comparison(options, target, plan, how); !status.ok())
      return fail(status);
  Recorder recorder;
  if (const Status status = recorder.begin(options.recording, "op", target.device(), machine);
      !status.ok())
    return fail(status);
  const auto& stop = catch_interrupts();
  Progress progress("bench");
  Printer printer(plan, !options.json, recorder);
  auto result = lab::measure_all(target, plan, how, stop, progress, printer);
  progress.clear();
  if (!result.ok()) {
    recorder.end("failed");
    return fail(result.status());
  }
  std::vector<lab::VerdictRow> verdicts;
  if (options.compares_variants())
    verdicts = lab::compare_variants(result->cases, options.compare[0], options.compare[1]);
  if (options.json) {
    auto document = to_json(*result, verdicts);
    document["device"] = target.device();
    document["machine"] = fingerprint(machine);
    document["run"] = recorder.id();
    print_json(document);
  } else {
    print_notes(*result, plan);
    if (!verdicts.empty()) print_verdicts(verdicts);
  }
  return finish(options, *result, recorder, write_profile(options, *result, target, machine));
}

int compare_stored(const Options& options) {
  std::vector<std::vector<lab::Row>> rows;
  std::vector<std::string> machines;
  auto store = open_store(options.recording.db, lab::Store::Missing::refuse);
  if (!store.ok()) return fail(store.status());
  for (const auto& name : options.compare) {
    auto id = parse_run(name);
    if (!id.ok()) return fail(id.status());
    auto summary = store->run(*id);
    if (!summary.ok()) return fail(summary.status());
    auto stored = store->rows(*id);
    if (!stored.ok()) return fail(stored.status());
    machines.push_back(summary->machine);
    rows.push_back(*std::move(stored));
  }
  const auto verdicts = lab::compare_runs(rows[0], rows[1]);
  if (options.json) {
    auto judged = nlohmann::json::array();
    for (const auto& verdict : verdicts) judged.push_back(lab::to_json(verdict));
    print_json(nlohmann::json{{"same_machine", machines[0] == machines[1]}, {"verdicts", judged}});
  } else {
    print_verdicts(verdicts);
    if (machines[0] != machines[1]) fmt::print("\nthe runs come from different machines\n");
  }
  if (verdicts.empty()) fmt::print(stderr, "millrace: the two runs have no row in common\n");
  return verdicts.empty() ? kFailed : 0;
}

int bench(Options options) {
  const auto is_run = [](const std::string& name) { return name.starts_with("run:"); };
  const auto n_runs = std::count_if(options.compare.begin(), options.compare.end(), is_run);
  if (n_runs == 2) return compare_stored(options);
  if (n_runs == 1)
    return fail(
        error(Code::invalid_argument, "--compare takes two variants, or two runs as run:ID"));
  if (options.compares_variants()) options.filter.variants = options.compare;
  const Machine machine = find_machine();
  auto target = lab::make_target(options.device, machine, options.threads);
  if (!target.ok()) return fail(target.status());
  auto plan = lab::plan_bench(**target, options.filter);
  if (!plan.ok()) return fail(plan.status());
  if (options.list) {
    const Status listed = print_list(*plan, options, machine);
    return listed.ok() ? 0 : fail(listed);
  }
  return measure(options, machine, **target, *std::move(plan));
}

// Named by -m, or as the one name that is no op's.
bool names_model(const Options& options) {
  return !options.model.model.empty() ||
         (options.filter.ops.size() == 1 && op_named(options.filter.ops[0]) == nullptr);
}

int bench_whole(const BenchModelOptions& options) {
  if (!options.trace.empty())
    if (const int failed = bench_trace(options); failed != 0 || !options.ops) return failed;
  return options.ops ? bench_ops(options) : bench_model(options);
}

// `bench serve`, where other names would be ops; a model of that name is ./serve.
bool is_server(const Options& options) {
  return !options.filter.ops.empty() && options.filter.ops[0] == "serve";
}

int bench_server(const Options& options) {
  const auto& names = options.filter.ops;
  BenchServeOptions out{.url = options.url,
                        .model = options.model.model,
                        .threads = options.threads,
                        .json = options.json,
                        .quick = options.quick,
                        .recording = options.recording};
  if (names.size() == 2 && out.model.empty()) out.model = names[1];
  if (names.size() > 2 || (names.size() == 2 && out.model != names[1]))
    return fail(error(Code::invalid_argument, "bench serve takes one model"));
  if (out.url.empty() && out.model.empty())
    return fail(error(Code::invalid_argument,
                      "bench serve needs a model to serve, or a server: millrace bench serve -m "
                      "MODEL, or --url http://127.0.0.1:8080"));
  return bench_serve(out);
}

BenchSelfOptions self_options(const Options& options) {
  return {.device = options.device,
          .threads = options.threads,
          .seconds = options.seconds,
          .json = options.json,
          .recording = options.recording};
}

int run_bench(Options& options) {
  if (options.chain) return bench_chain(options.recording, options.json);
  if (options.spin) return bench_spin(self_options(options));
  if (options.n_twins > 0)
    return bench_twins(self_options(options), options.filter, options.n_twins);
  if (is_server(options)) return bench_server(options);
  if (!options.url.empty())
    return fail(error(Code::invalid_argument, "--url belongs to millrace bench serve"));
  if (!options.model.model.empty() && !options.filter.ops.empty())
    return fail(error(Code::invalid_argument, "give ops or a model (-m), not both"));
  if (!names_model(options)) {
    if (options.model.ops || !options.model.trace.empty())
      return fail(error(Code::invalid_argument, "{} needs a model: millrace bench MODEL",
                        options.model.ops ? "--ops" : "--trace"));
    return bench(options);
  }
  if (options.model.model.empty()) options.model.model = options.filter.ops[0];
  if (const auto file = open_model(options.model.model); file.status().code() == Code::not_found)
    return fail(error(Code::not_found, "'{}' is neither an op ({}) nor a model: {}",
                      options.model.model, op_names(), file.status().message()));
  options.model.threads = options.threads;
  options.model.json = options.json;
  options.model.device = options.device;
  options.model.recording = options.recording;
  return bench_whole(options.model);
}

// What 'lab run' measures is stored where its hypothesis is.
Status check_experiment(const Options& options, const Recording& asked) {
  if (asked.hypothesis == 0) return {};
  if (options.recording.no_store || options.recording.db != asked.db)
    return error(
        Code::invalid_argument,
        "lab run stores the run beside its hypothesis: leave out --no-store, and give --db "
        "to lab run, before '--'");
  if (options.list) return error(Code::invalid_argument, "--list measures nothing");
  return {};
}

void add_model_bench(Command& command, BenchModelOptions& model) {
  Command whole = command.group("Whole model");
  whole.option("-m,--model", model.model, "Path of a model, or a name from 'millrace models'")
      .type_name("MODEL");
  whole
      .option("-p,--n-prompt", model.prompts,
              "Prompt lengths in tokens, separated by commas (default: 512)")
      .delimiter(',')
      .range(1, 1 << 20);
  whole.option("-n,--n-gen", model.n_decode, "Number of tokens to decode")
      .range(1, 1 << 20)
      .show_default();
  whole
      .option("-d,--contexts", model.contexts,
              "Tokens already in the context when decoding starts, separated by commas")
      .delimiter(',')
      .range(0, 1 << 24)
      .show_default();
  whole.option("-b,--batch-size", model.n_batch, kBatchHelp).range(1, 8192);
  whole.option("-r,--repetitions", model.repeats, "Number of repetitions")
      .range(1, 1000)
      .show_default();
  whole.flag("--ops", model.ops,
             "Time each op of a decode step instead, and of a prefill step if -p is given");
  whole
      .option("--trace", model.trace,
              "Write a trace of one prefill step and a few decode steps, for ui.perfetto.dev")
      .type_name("FILE");
}

}  // namespace

void add_bench(App& app, const Recording& recording) {
  auto options = std::make_shared<Options>();
  options->recording = recording;
  Command command = app.add(
      "bench",
      "Verify kernels and time them against this machine's limits, or time a model or a server");
  command
      .option("op", options->filter.ops,
              "Ops to measure (default: all), or one model, to measure it as a whole, or 'serve', "
              "to measure the server")
      .type_name("OP");
  command.option("--case", options->filter.cases, "Only these cases, by name or shell pattern")
      .type_name("CASE");
  command.option("--variant", options->filter.variants, "Only these variants").type_name("VARIANT");
  command
      .option("--compare", options->compare,
              "Compare two variants, or two stored runs given as run:ID: B is FAST, SLOW, SAME or "
              "AMBIGUOUS")
      .type_name("A B")
      .n_values(2);
  command.option("--device", options->device, "cpu or cuda")
      .type_name("DEVICE")
      .one_of({"cpu", "cuda"})
      .show_default();
  command.option("-t,--threads", options->threads, "Number of threads (default: one per CPU)")
      .range(1, 1024);
  command.option("--seconds", options->seconds, "Seconds to spend on each case and mode")
      .real_range(0.01, 3600.0);
  command.option("--db", options->recording.db, "Database of runs (default: the user's own)")
      .type_name("FILE");
  command.flag("--no-store", options->recording.no_store, "Do not store the run");
  command
      .option("--write-profile", options->profile,
              "Write the fastest variant of each class to this profile; 'default' is the one that "
              "models are run with")
      .type_name("FILE");
  command.flag("--quick", options->quick, "Fewer samples; verified as always");
  command.flag("--list", options->list,
               "List what would be measured and which variant would be picked");
  command.flag("--json", options->json, "Print JSON");
  add_model_bench(command, options->model);
  command.group("Server (millrace bench serve -m MODEL)")
      .option("--url", options->url, "Measure this server (default: start one from the model)")
      .type_name("URL");
  Option chain =
      command.flag("--chain", options->chain,
                   "Measure only the matrix products of a whole model, chained on the GPU");
  for (const char* other :
       {"op", "--case", "--variant", "--compare", "--device", "--threads", "--seconds",
        "--write-profile", "--quick", "--list", "--model", "--url"})
    chain.excludes(command.find(other));
  Option spin =
      command.flag("--spin", options->spin,
                   "Time a kernel that spins 10 us by the device's own clock, an empty one "
                   "and one that takes 3 % longer: what the harness itself reads");
  Option twins = command
                     .option("--compare-twin", options->n_twins,
                             "Compare one variant with itself N times and count how often a "
                             "difference is called")
                     .range(1, 1000000);
  for (const char* other :
       {"--compare", "--write-profile", "--quick", "--list", "--model", "--url", "--chain"}) {
    spin.excludes(command.find(other));
    twins.excludes(command.find(other));
  }
  for (const char* other : {"op", "--case", "--variant", "--compare-twin"})
    spin.excludes(command.find(other));
  command.runs([options, recording] {
    const Status status = check_experiment(*options, recording);
    return status.ok() ? run_bench(*options) : fail(status);
  });
}

}  // namespace millrace::cli
