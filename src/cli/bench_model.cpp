#include "cli/bench_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/progress.h"
#include "base/utf8.h"
#include "cli/bench_steps.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_session.h"
#include "lab/model_bench.h"
#include "lab/report.h"
#include "lab/target.h"
#include "machine/ceilings.h"

namespace millrace::cli {
namespace {

// Proportional set size: memory shared with others counts by its share.
size_t pss_bytes() {
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string word; in >> word;)
    if (size_t kib = 0; word == "Pss:" && in >> kib) return kib << 10;
  return 0;
}

struct Report {
  std::vector<lab::ModelRow> rows;
  Machine machine;
  double load_s = 0, first_token_s = 0;
  lab::Roof before, after;  // of as many lanes as ran
  size_t pss_bytes = 0, weight_bytes = 0, token_weight_bytes = 0, llc_bytes = 0;
  int n_lanes = 0;
  int64_t n_witness_steps = 0;
  std::string model, noise, fingerprint, gpu, witness;

  bool weights_fit_cache() const { return weight_bytes <= llc_bytes; }
  double read_gbps() const { return std::max(before.read_gbps, after.read_gbps); }
  size_t n_steps() const {
    size_t n = 0;
    for (const lab::ModelRow& row : rows) n += row.hashes.size();
    return n;
  }
};

// Both of one denominator: the median floor of the row's rounds.
double share(const lab::ModelRow& row, double rate) {
  return rate / row.floor_rate();
}
double gbps(const lab::ModelRow& row) {
  return row.n_bytes * 1e-9 / lab::median(row.seconds);
}
double best(const lab::Metric& rate) {
  return *std::max_element(rate.samples.begin(), rate.samples.end());
}

void print_row(const lab::ModelRow& row) {
  const lab::Metric rate = row.rate();
  fmt::print("{:<8} {:>6} {:>8} {:>10.1f} {:>10.1f} {:>6}",
             row.work.is_decode ? "decode" : "prefill", row.work.n_tokens, row.work.context,
             best(rate), rate.value.mid,
             std::isfinite(rate.noise) ? fmt::format("{:.1f}", 100 * rate.noise) : "?");
  if (row.n_bytes > 0) fmt::print(" {:>8.1f}", gbps(row));
  if (row.has_floor())
    fmt::print(" {:>8.1f} {:>6.1f} {:>8.1f}", row.floor_rate(), 100 * share(row, best(rate)),
               100 * share(row, rate.value.mid));
  fmt::print("\n");
}

nlohmann::json to_json(const lab::ModelRow& row) {
  const lab::Metric rate = row.rate();
  nlohmann::json out = {{"tokens", row.work.n_tokens},
                        {"context", row.work.context},
                        {"tok_s", best(rate)},
                        {"tok_s_median", rate.value.mid},
                        {"seconds", row.seconds},
                        {"twin_seconds", row.twin_seconds},
                        {"verified_steps", row.hashes.size()}};
  if (std::isfinite(rate.noise)) out["noise"] = rate.noise;
  if (row.n_bytes > 0) out["gb_s"] = gbps(row);
  if (row.has_floor()) {
    out["floor_tok_s"] = row.floor_rate();
    out["floor_share"] = share(row, rate.value.mid);
    out["best_floor_share"] = share(row, best(rate));
    out["floor_seconds"] = row.floor_seconds;
  }
  return out;
}

void print_head(const Report& report, const BenchModelOptions& options) {
  if (options.device == "cuda")
    fmt::print("{}", report.gpu);
  else
    fmt::print("{} threads", report.n_lanes);
  fmt::print(", {:.1f} MB of weights", static_cast<double>(report.weight_bytes) * 1e-6);
  if (report.token_weight_bytes < report.weight_bytes)
    fmt::print(", {:.1f} MB of them per token",
               static_cast<double>(report.token_weight_bytes) * 1e-6);
  if (report.read_gbps() > 0) fmt::print(", {:.1f} GB/s read", report.read_gbps());
  fmt::print(", numerics {}\n", report.fingerprint);
  fmt::print("loaded in {:.3f} s, first token after {:.3f} s, {:.1f} MB of memory in use\n\n",
             report.load_s, report.first_token_s, static_cast<double>(report.pss_bytes) * 1e-6);
}

void print_table(const Report& report, const BenchModelOptions& options) {
  print_head(report, options);
  fmt::print("{:<8} {:>6} {:>8} {:>10} {:>10} {:>6} {:>8} {:>8} {:>6} {:>8}\n", "", "tokens",
             "context", "best tok/s", "median", "A/A %", "GB/s", "floor", "best %", "median %");
  for (const lab::ModelRow& row : report.rows) print_row(row);
  fmt::print(
      "\n{} rounds, each timed twice (A/A: what that alone differs by). The floor: tokens/s if the "
      "bytes of\nweights and KV came at the bandwidth of a bare loop on the same {}, median of the "
      "rounds; both\npercentages are of it. GB/s is the median's.\n",
      options.repeats, options.device == "cuda" ? "GPU" : "threads");
  fmt::print("verified: the logits of {} steps, the same in every round; {} of them the same {}\n",
             report.n_steps(), report.n_witness_steps, report.witness);
  if (report.weights_fit_cache())
    fmt::print(
        "\nthe weights fit in the last-level cache ({:.0f} MB): the floor is the time to read "
        "them from memory,\nand weights that stay in the cache between tokens beat it\n",
        static_cast<double>(report.llc_bytes) * 1e-6);
  if (!report.noise.empty()) fmt::print("\n{}; do not quote these numbers\n", report.noise);
}

void print(const Report& report, const BenchModelOptions& options, int64_t run) {
  if (!options.json) return print_table(report, options);
  nlohmann::json out = {{"model", options.model},
                        {"run", run},
                        {"lanes", report.n_lanes},
                        {"fingerprint", report.fingerprint},
                        {"load_s", report.load_s},
                        {"load_to_first_token_s", report.first_token_s},
                        {"pss_bytes", report.pss_bytes},
                        {"weight_bytes", report.weight_bytes},
                        {"token_weight_bytes", report.token_weight_bytes},
                        {"read_gb_s", report.read_gbps()},
                        {"weights_fit_cache", report.weights_fit_cache()},
                        {"witness", report.witness},
                        {"witness_steps", report.n_witness_steps},
                        {"noise", report.noise}};
  for (const lab::ModelRow& row : report.rows)
    out[row.work.is_decode ? "decode" : "prefill"].push_back(to_json(row));
  print_json(out);
}

// After it was measured: what is stored is not in the memory that was looked at.
Status record(const Report& report, const BenchModelOptions& options, Recorder& recorder) {
  MILLRACE_TRY(recorder.begin(options.recording, "model", options.device, report.machine));
  recorder.add_ceilings("before", report.before);
  recorder.add_ceilings("after", report.after);
  lab::Subject subject{"model", report.model, "", "", options.device, report.n_lanes};
  std::vector<lab::Metric> metrics = lab::metrics_of(report.rows, subject);
  const auto add = [&](const char* what, const char* name, const char* unit, const char* better,
                       double sample) {
    subject.problem = what;
    metrics.push_back(lab::metric_of(subject, name, unit, better, {sample}));
  };
  add("first token", "time", "s", "lower", report.first_token_s);
  add("first token", "memory", "bytes", "lower", static_cast<double>(report.pss_bytes));
  add("verification", "verified_steps", "steps", "higher", static_cast<double>(report.n_steps()));
  add("verification", "witness_steps", "steps", "higher",
      static_cast<double>(report.n_witness_steps));
  recorder.add_metrics(metrics);
  recorder.end("done");
  return recorder.status();
}

// A short prompt, as a person's first question is.
constexpr int64_t kShortPrompt = 8;

int64_t context_for(const BenchModelOptions& options) {
  const int64_t longest = *std::max_element(options.prompts.begin(), options.prompts.end());
  const int64_t deepest = *std::max_element(options.contexts.begin(), options.contexts.end());
  return std::max(longest, deepest + options.n_decode);
}

ModelOptions model_options(const BenchModelOptions& options) {
  return {.model = options.model,
          .threads = options.threads,
          .n_ctx = context_for(options),
          .n_batch = options.n_batch,
          .device = options.device};
}

// Every weight that a token uses, and the KV of all tokens before.
double bytes_read(const Engine& engine, const lab::ModelWork& work) {
  const int64_t n = work.n_tokens;
  const int64_t kv = kv_bytes_per_token(engine.config(), engine.options().kv_type);
  const int64_t kv_tokens = n * work.context + n * (n + 1) / 2;
  return static_cast<double>(n) * static_cast<double>(engine.network().weight_bytes_of_a_row()) +
         static_cast<double>(kv_tokens * kv);
}

// The bandwidth of the lanes, or of the GPU, that the model runs on.
class Bandwidth {
 public:
  static Result<Bandwidth> make(ModelSession& session, const std::string& device) {
    Bandwidth out;
    if (device == "cuda") {
      MILLRACE_ASSIGN(out.target_, lab::make_target("cuda", session.machine(), 0));
      MILLRACE_ASSIGN(out.roof_, out.target_->measure_roof(Effort::quick));
    } else {
      out.probe_ = std::make_unique<CeilingProbe>(session.machine(), session.team());
    }
    return out;
  }
  // 0 where memory is short. A GPU's does not move from step to step.
  double now() { return probe_ ? probe_->now({}).read_gbps_all : roof_.read_gbps; }
  // The best of a few looks.
  Result<lab::Roof> roof() {
    lab::Roof out;
    if (target_) return target_->measure_roof(Effort::quick);
    for (int i = 0; i < 5; ++i) out.read_gbps = std::max(out.read_gbps, now());
    return out;
  }

 private:
  std::unique_ptr<CeilingProbe> probe_;
  std::unique_ptr<lab::Target> target_;
  lab::Roof roof_;
};

Status measure_rows(const BenchModelOptions& options, ModelSession& session,
                    std::span<const int32_t> tokens, Report& report) {
  Engine& engine = session.engine();
  MILLRACE_ASSIGN(Bandwidth bandwidth, Bandwidth::make(session, options.device));
  MILLRACE_ASSIGN(report.before, bandwidth.roof());
  const lab::ModelCosts costs{
      .bytes_of = [&](const lab::ModelWork& work) { return bytes_read(engine, work); },
      .gbps_now = [&] { return bandwidth.now(); }};
  Progress progress("bench");
  lab::ModelBenchOptions how{.prompts = options.prompts,
                             .contexts = options.contexts,
                             .n_decode = options.n_decode,
                             .n_rounds = options.repeats,
                             .stop = &catch_interrupts()};
  if (!options.json)
    how.progress = [&](double share, std::string_view what) { progress.at(share, what); };
  lab::EngineSteps steps(engine);
  MILLRACE_ASSIGN(report.rows, lab::ModelBench(steps, tokens, costs, how).run());
  MILLRACE_ASSIGN(report.after, bandwidth.roof());
  return {};
}

// The first tokens again, loaded anew, on another number of lanes (a GPU has none) and with another
// batch size.
Status check_witness(const BenchModelOptions& options, std::span<const int32_t> tokens,
                     Report& report) {
  ModelOptions model = model_options(options);
  model.threads = report.n_lanes == 1 ? 2 : 1;
  model.n_batch = 24;
  MILLRACE_ASSIGN(auto session,
                  ModelSession::load(model, {.quiet = options.json, .any_context = true}));
  lab::EngineSteps steps(session->engine());
  MILLRACE_ASSIGN(report.n_witness_steps, lab::check_against(steps, tokens, report.rows));
  report.witness = options.device == "cuda"
                       ? fmt::format("in batches of {}", model.n_batch)
                       : fmt::format("on {} thread{} in batches of {}", session->team().size(),
                                     session->team().size() == 1 ? "" : "s", model.n_batch);
  return {};
}

Result<Report> measure(const BenchModelOptions& options) {
  Report report;
  const int64_t start_ns = now_ns();
  MILLRACE_ASSIGN(auto session, ModelSession::load(model_options(options),
                                                   {.quiet = options.json, .any_context = true}));
  Engine& engine = session->engine();
  const std::vector<int32_t> tokens = random_tokens(engine.n_ctx(), engine.config().n_vocab);
  MILLRACE_ASSIGN(const int seq, engine.open());
  MILLRACE_TRY(compute(
      engine, seq,
      std::span(tokens).first(static_cast<size_t>(std::min(kShortPrompt, engine.n_ctx())))));
  MILLRACE_TRY(engine.logits(0).status());
  report.first_token_s = static_cast<double>(now_ns() - start_ns) * 1e-9;
  engine.close(seq);
  report.pss_bytes = pss_bytes();
  report.load_s = session->load_seconds();
  report.model = session->name();
  report.machine = session->machine();
  report.weight_bytes = engine.network().weight_bytes();
  report.token_weight_bytes = engine.network().weight_bytes_of_a_row();
  report.llc_bytes = session->machine().llc_bytes;
  report.n_lanes = session->team().size();
  report.fingerprint = engine.fingerprint();
  if (options.device == "cuda")
    report.gpu = session->machine().gpus.front().name;
  else
    report.noise = measure_ceilings(session->machine(), Effort::quick).noise;
  MILLRACE_TRY(measure_rows(options, *session, tokens, report));
  session.reset();
  MILLRACE_TRY(check_witness(options, tokens, report));
  return report;
}

}  // namespace

int bench_model(const BenchModelOptions& asked) {
  BenchModelOptions options = asked;
  if (options.prompts.empty()) options.prompts = {kPromptTokens};
  auto report = measure(options);
  if (!report.ok()) return fail(report.status());
  Recorder recorder;
  const Status recorded = record(*report, options, recorder);
  print(*report, options, recorder.id());
  if (!recorded.ok() && recorder.status().ok())
    fmt::print(stderr, "millrace: the run was not stored: {}\n", recorded.message());
  return recorder.report(!options.json) && recorded.ok() ? 0 : kFailed;
}

}  // namespace millrace::cli
