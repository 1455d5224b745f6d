#include "cli/bench_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/bench_steps.h"
#include "cli/commands.h"
#include "cli/model_session.h"
#include "machine/ceilings.h"

namespace millrace::cli {
namespace {

// Best and median of the repeats: the machine is rarely quiet, and the best is what it can do.
struct Times {
  std::vector<double> seconds;

  double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

struct Timing {
  std::string what;  // prefill or decode
  int64_t n_tokens = 0, context = 0;
  double n_bytes = 0;  // read at least, where that is the bound
  Times times = {};
  // The least that each repeat could have taken by its bytes, at the bandwidth that the bare loop
  // had between its own steps: where others share the host, that moves by half within a second.
  Times floors = {};

  double tokens_per_s() const { return static_cast<double>(n_tokens) / times.best(); }
  double gbps() const { return n_bytes * 1e-9 / times.best(); }
  bool has_floor() const { return !floors.seconds.empty(); }  // prefill is bound by arithmetic
  double floor_share() const {
    Times shares;
    for (size_t i = 0; i < floors.seconds.size(); ++i)
      shares.seconds.push_back(floors.seconds[i] / times.seconds[i]);
    return shares.median();
  }
};

template <class Body>
Result<double> seconds_of(Body&& body) {
  const int64_t start_ns = now_ns();
  MILLRACE_TRY(body());
  return static_cast<double>(now_ns() - start_ns) * 1e-9;
}

// Proportional set size: memory shared with others counts by its share.
size_t pss_bytes() {
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string word; in >> word;)
    if (size_t kib = 0; word == "Pss:" && in >> kib) return kib << 10;
  return 0;
}

// Decoded between two looks at what the memory gives.
constexpr int64_t kTokensAProbe = 8;

class Bench {
 public:
  Bench(Engine& engine, int seq, const BenchModelOptions& options, CeilingProbe& probe)
      : engine_(engine),
        seq_(seq),
        options_(options),
        probe_(probe),
        tokens_(random_tokens(engine.n_ctx(), engine.config().n_vocab)) {}

  Result<Timing> prefill(int64_t n) {
    Timing row{.what = "prefill", .n_tokens = n};
    for (int i = 0; i <= options_.repeats; ++i) {
      MILLRACE_TRY(restart());
      MILLRACE_ASSIGN(const double s, seconds_of([&] { return compute_first(n); }));
      if (i > 0) row.times.seconds.push_back(s);  // the first warms up
    }
    return row;
  }

  Result<Timing> decode(int64_t context) {
    Timing row{.what = "decode",
               .n_tokens = options_.n_decode,
               .context = context,
               .n_bytes = bytes_read(context, options_.n_decode)};
    for (int i = 0; i < options_.repeats; ++i) {
      MILLRACE_TRY(restart());
      MILLRACE_TRY(compute_first(context));
      MILLRACE_ASSIGN(const Decoded decoded, decode_all(context));
      row.times.seconds.push_back(decoded.seconds);
      if (decoded.floor_s > 0) row.floors.seconds.push_back(decoded.floor_s);
    }
    return row;
  }

 private:
  struct Decoded {
    double seconds = 0, floor_s = 0;
  };

  Status restart() {
    engine_.close(seq_);
    MILLRACE_ASSIGN(seq_, engine_.open());
    return {};
  }
  Status compute_first(int64_t n) {
    if (n == 0) return {};
    MILLRACE_TRY(compute(engine_, seq_, std::span(tokens_).first(static_cast<size_t>(n))));
    return engine_.logits(0).status();  // a GPU is waited for
  }

  Result<Decoded> decode_all(int64_t context) {
    Decoded out;
    for (int64_t i = 0; i < options_.n_decode; i += kTokensAProbe) {
      const int64_t n = std::min(kTokensAProbe, options_.n_decode - i);
      MILLRACE_ASSIGN(const double s, seconds_of([&] { return decode_steps(context + i, n); }));
      out.seconds += s;
      if (options_.device == "cuda") continue;           // its memory is not what the probe reads
      const double gbps = probe_.now({}).read_gbps_all;  // 0 where memory is short
      if (gbps > 0) out.floor_s += bytes_read(context + i, n) / (gbps * 1e9);
    }
    return out;
  }

  Status decode_steps(int64_t context, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(context + i);
      MILLRACE_TRY(engine_.step({.seq = seq_, .tokens = {&tokens_[at], 1}}));
      MILLRACE_TRY(engine_.logits(0).status());  // a GPU is waited for
    }
    return {};
  }

  // Every weight that a token uses, and the KV of all tokens before.
  double bytes_read(int64_t context, int64_t n) const {
    const int64_t kv = kv_bytes_per_token(engine_.config(), DType::f16);
    const int64_t kv_tokens = n * context + n * (n + 1) / 2;
    return static_cast<double>(n) * static_cast<double>(engine_.network().weight_bytes_of_a_row()) +
           static_cast<double>(kv_tokens * kv);
  }

  Engine& engine_;
  int seq_;
  const BenchModelOptions& options_;
  CeilingProbe& probe_;
  const std::vector<int32_t> tokens_;
};

void print_row(const Timing& row) {
  fmt::print("{:<8} {:>6} {:>8} {:>10.1f} {:>10.1f}", row.what, row.n_tokens, row.context,
             row.tokens_per_s(), static_cast<double>(row.n_tokens) / row.times.median());
  if (row.n_bytes > 0) fmt::print(" {:>8.1f}", row.gbps());
  if (row.has_floor()) fmt::print(" {:>8.0f} %", 100 * row.floor_share());
  fmt::print("\n");
}

nlohmann::json to_json(const Timing& row) {
  nlohmann::json out = {{"tokens", row.n_tokens},
                        {"context", row.context},
                        {"tok_s", row.tokens_per_s()},
                        {"tok_s_median", static_cast<double>(row.n_tokens) / row.times.median()},
                        {"seconds", row.times.seconds}};
  if (row.n_bytes > 0) out["gb_s"] = row.gbps();
  if (row.has_floor()) {
    out["floor_tok_s"] = static_cast<double>(row.n_tokens) / row.floors.median();
    out["floor_share"] = row.floor_share();
  }
  return out;
}

struct Report {
  std::vector<Timing> rows;
  double load_s = 0, first_token_s = 0, read_gbps = 0;
  size_t pss_bytes = 0, weight_bytes = 0, token_weight_bytes = 0, llc_bytes = 0;
  int n_lanes = 0;
  std::string noise, fingerprint, gpu;

  bool weights_fit_cache() const { return weight_bytes <= llc_bytes; }
};

void print(const Report& report, const BenchModelOptions& options) {
  if (!options.json) {
    if (options.device == "cuda")
      fmt::print("{}", report.gpu);
    else
      fmt::print("{} threads", report.n_lanes);
    fmt::print(", {:.1f} MB of weights", static_cast<double>(report.weight_bytes) * 1e-6);
    if (report.token_weight_bytes < report.weight_bytes)
      fmt::print(", {:.1f} MB of them per token",
                 static_cast<double>(report.token_weight_bytes) * 1e-6);
    if (report.read_gbps > 0) fmt::print(", {:.1f} GB/s read", report.read_gbps);
    fmt::print(", numerics {}\n", report.fingerprint);
    fmt::print("loaded in {:.3f} s, first token after {:.3f} s, {:.1f} MB of memory in use\n\n",
               report.load_s, report.first_token_s, static_cast<double>(report.pss_bytes) * 1e-6);
    fmt::print("{:<8} {:>6} {:>8} {:>10} {:>10} {:>8} {:>10}\n", "", "tokens", "context",
               "best tok/s", "median", "GB/s", "% of floor");
    for (const Timing& row : report.rows) print_row(row);
    if (report.weights_fit_cache())
      fmt::print(
          "\nthe weights fit in the last-level cache ({:.0f} MB): the floor is the time to read "
          "them from memory,\nand weights that stay in the cache between tokens beat it\n",
          static_cast<double>(report.llc_bytes) * 1e-6);
    if (!report.noise.empty()) fmt::print("\n{}; do not quote these numbers\n", report.noise);
    return;
  }
  nlohmann::json out = {{"model", options.model},
                        {"lanes", report.n_lanes},
                        {"fingerprint", report.fingerprint},
                        {"load_s", report.load_s},
                        {"load_to_first_token_s", report.first_token_s},
                        {"pss_bytes", report.pss_bytes},
                        {"weight_bytes", report.weight_bytes},
                        {"token_weight_bytes", report.token_weight_bytes},
                        {"read_gb_s", report.read_gbps},
                        {"weights_fit_cache", report.weights_fit_cache()},
                        {"noise", report.noise}};
  for (const Timing& row : report.rows) out[row.what].push_back(to_json(row));
  print_json(out);
}

// After it was measured: what is stored is not in the memory that was looked at.
bool record(const Report& report, const BenchModelOptions& options) {
  Recorder recorder;
  if (const Status status =
          recorder.begin(options.recording, "model", options.device, find_machine());
      !status.ok()) {
    fmt::print(stderr, "millrace: the run was not stored: {}\n", status.message());
    return false;
  }
  std::vector<lab::Metric> metrics;
  const auto add = [&](const std::string& what, const char* name, const char* unit,
                       const char* better, std::vector<double> samples) {
    metrics.push_back(lab::metric_of(
        lab::Subject{"model", options.model, what, "", options.device, report.n_lanes}, name, unit,
        better, std::move(samples)));
  };
  for (const Timing& row : report.rows) {
    std::vector<double> rates;
    for (const double s : row.times.seconds) rates.push_back(static_cast<double>(row.n_tokens) / s);
    add(fmt::format("{} {} at {}", row.what, row.n_tokens, row.context), "tokens_per_s", "tok/s",
        "higher", std::move(rates));
  }
  add("first token", "time", "s", "lower", {report.first_token_s});
  recorder.add_metrics(metrics);
  recorder.end("done");
  return recorder.report(!options.json);
}

// A short prompt, as a person's first question is.
constexpr int64_t kShortPrompt = 8;

Result<Report> measure(const BenchModelOptions& options) {
  Report report;
  const int64_t longest = *std::max_element(options.prompts.begin(), options.prompts.end());
  const int64_t deepest = *std::max_element(options.contexts.begin(), options.contexts.end());
  const int64_t start_ns = now_ns();
  const ModelOptions model{.model = options.model,
                           .threads = options.threads,
                           .n_ctx = std::max(longest, deepest + options.n_decode),
                           .n_batch = options.n_batch,
                           .device = options.device};
  MILLRACE_ASSIGN(auto session,
                  ModelSession::load(model, {.quiet = options.json, .any_context = true}));
  Engine& engine = session->engine();
  MILLRACE_ASSIGN(const int seq, engine.open());
  MILLRACE_TRY(compute(
      engine, seq, random_tokens(std::min(kShortPrompt, engine.n_ctx()), engine.config().n_vocab)));
  report.first_token_s = static_cast<double>(now_ns() - start_ns) * 1e-9;
  report.pss_bytes = pss_bytes();
  report.load_s = session->load_seconds();
  report.weight_bytes = engine.network().weight_bytes();
  report.token_weight_bytes = engine.network().weight_bytes_of_a_row();
  report.llc_bytes = session->machine().llc_bytes;
  report.n_lanes = session->team().size();
  report.fingerprint = engine.fingerprint();
  if (options.device == "cuda") {
    report.gpu = session->machine().gpus.front().name;
  } else {
    const Ceilings ceilings = measure_ceilings(session->machine(), Effort::quick);
    report.read_gbps = report.n_lanes == 1 ? ceilings.read_gbps_one : ceilings.read_gbps_all;
    report.noise = ceilings.noise;
  }
  CeilingProbe probe(session->machine(), session->team());
  Bench bench(engine, seq, options, probe);
  for (const int64_t n : options.prompts) {
    MILLRACE_ASSIGN(Timing prefill, bench.prefill(n));
    report.rows.push_back(std::move(prefill));
  }
  for (const int64_t context : options.contexts) {
    MILLRACE_ASSIGN(Timing decode, bench.decode(context));
    report.rows.push_back(std::move(decode));
  }
  return report;
}

}  // namespace

int bench_model(const BenchModelOptions& asked) {
  BenchModelOptions options = asked;
  if (options.prompts.empty()) options.prompts = {kPromptTokens};
  auto report = measure(options);
  if (!report.ok()) return fail(report.status());
  print(report.value(), options);
  return record(report.value(), options) ? 0 : kFailed;
}

}  // namespace millrace::cli
