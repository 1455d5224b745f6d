#include "cli/bench_serve.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "base/clock.h"
#include "cli/bench_serve_client.h"
#include "cli/bench_serve_process.h"
#include "cli/commands.h"
#include "files/json.h"
#include "serve/http_listen.h"

namespace millrace::cli {
namespace {

using nlohmann::json;
using Ids = std::vector<LoadClient::Id>;

// How much of everything. The quick ones only show that it works.
struct Sizes {
  int n_warm = 30, n_requests = 300;
  int64_t n_stream_tokens = 256;
  int n_repeats = 3;
  int n_open = 1000, n_active = 200;
  int64_t n_active_tokens = 32, n_long_prompt = 7000;
  double idle_s = 5;
};
constexpr Sizes kQuick = {.n_warm = 3,
                          .n_requests = 20,
                          .n_stream_tokens = 32,
                          .n_repeats = 1,
                          .n_open = 40,
                          .n_active = 20,
                          .n_active_tokens = 8,
                          .n_long_prompt = 1000,
                          .idle_s = 1};

constexpr int64_t kShortPrompt = 16;
constexpr double kChunkMs = 200;  // the server's default, said to it all the same
constexpr int kHolders = 8;       // requests that run while the other open streams wait
constexpr double kLoadS = 300;    // for all answers of one measurement

struct Figure {
  std::string what = {};
  std::optional<double> value = {};
  std::string unit = {};
  std::optional<double> target = {};
  bool at_least = false;
  std::string note = {};

  bool is_count() const { return unit.empty(); }  // of what must not be: its target is none
  bool is_missed() const {
    if (!value || !target) return false;
    if (is_count()) return *value > *target;
    return at_least ? *value < *target : *value >= *target;
  }
};

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto at = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::clamp<size_t>(at, 1, values.size()) - 1];
}

double seconds_between(int64_t start_ns, int64_t end_ns) {
  return static_cast<double>(end_ns - start_ns) * 1e-9;
}

Result<double> timing(const Fetched& fetched, const char* name) {
  MILLRACE_ASSIGN(const json answer, parse_json(fetched.body, "the answer"));
  const json timings = answer.value("timings", json::object());
  if (!timings.contains(name) || !timings[name].is_number())
    return error(Code::unavailable, "the answer has no timings.{}: is this a millrace server?",
                 name);
  return timings[name].get<double>();
}

// One server, and a client of it. Prompts are token ids, so that they have the length that they
// should, and differ, so that no two of them share more than chance has it.
class Bench {
 public:
  Bench(LoadClient& client, const ServerProcess* process, const Sizes& sizes)
      : client_(client), process_(process), sizes_(sizes) {}

  Status prepare() {
    MILLRACE_ASSIGN(
        const Fetched tokens,
        client_.fetch("/tokenize", R"({"content":"The mill stands by the river, and )"
                                   R"(its wheel turns all day while the boy reads."})"));
    MILLRACE_ASSIGN(const json said, parse_json(tokens.body, "/tokenize"));
    ids_ = said.at("tokens").get<std::vector<int32_t>>();
    MILLRACE_ASSIGN(const Fetched models, client_.fetch("/v1/models", ""));
    MILLRACE_ASSIGN(const json list, parse_json(models.body, "/v1/models"));
    n_ctx_ = list.at("data").at(0).at("max_model_len").get<int64_t>();
    if (ids_.empty()) return error(Code::unavailable, "the server's tokenizer gives no tokens");
    return client_.fetch(kPath, body(kShortPrompt, 1, false)).status();
  }

  // Request time less its step: what parsing, queues, threads, sockets and this client cost.
  Result<std::vector<Figure>> overhead() {
    const std::string asked = body(kShortPrompt, 1, false);
    std::vector<double> over_us;
    for (int i = -sizes_.n_warm; i < sizes_.n_requests; ++i) {
      MILLRACE_ASSIGN(const Fetched one, client_.fetch(kPath, asked));
      MILLRACE_ASSIGN(const double step_ms, timing(one, "prompt_ms"));
      if (i >= 0) over_us.push_back(one.seconds() * 1e6 - step_ms * 1e3);
    }
    const std::string note = fmt::format("{} one-token answers", over_us.size());
    return std::vector<Figure>{
        {"overhead, median", percentile(over_us, 0.5), "us", 300, false, note},
        {"overhead, p99", percentile(over_us, 0.99), "us", 2000, false, ""}};
  }

  struct Rates {
    double one = 0, eight = 0;  // the best of each
    double ratio = 0;           // the median of the rounds'
  };
  // In turns, because the machine is rarely the same for long.
  Result<Rates> rates() {
    Rates out;
    std::vector<double> ratios;
    for (int i = 0; i < sizes_.n_repeats; ++i) {
      MILLRACE_ASSIGN(const double one, rate(1));
      MILLRACE_ASSIGN(const double eight, rate(8));
      ratios.push_back(eight / one);
      out = {std::max(out.one, one), std::max(out.eight, eight), 0};
    }
    out.ratio = percentile(ratios, 0.5);
    return out;
  }

  Result<std::vector<Figure>> active() {
    const int64_t start_ns = now_ns();
    MILLRACE_ASSIGN(const Ids ids, send(sizes_.n_active, sizes_.n_active_tokens));
    MILLRACE_TRY(wait_all(ids));
    const double seconds = seconds_between(start_ns, now_ns());
    double n_bad = 0;
    for (const auto id : ids) n_bad += is_whole(id, sizes_.n_active_tokens) ? 0 : 1;
    const auto n_tokens = static_cast<double>(sizes_.n_active * sizes_.n_active_tokens);
    return std::vector<Figure>{{fmt::format("{} active streams, errors", sizes_.n_active), n_bad,
                                "", 0, false,
                                fmt::format("{} tokens each, {:.0f} tokens/s in all",
                                            sizes_.n_active_tokens, n_tokens / seconds)}};
  }

  // A few run, for as long as it takes, and all the others wait behind them.
  Result<std::vector<Figure>> open() {
    MILLRACE_ASSIGN(Ids ids, send(kHolders, longest_answer()));
    MILLRACE_TRY(wait_texts(ids, 4));
    const double before_mb = process_ == nullptr ? 0 : process_->resident_mb();
    MILLRACE_ASSIGN(const Ids others, send(sizes_.n_open - kHolders, 16));
    ids.insert(ids.end(), others.begin(), others.end());
    MILLRACE_TRY(client_.wait(
        [&] {
          return std::all_of(ids.begin(), ids.end(), [&](auto id) {
            return client_.at(id).status != 0 || client_.at(id).has_ended();
          });
        },
        kLoadS));
    MILLRACE_TRY(client_.idle(0.5));
    double n_bad = 0;
    // Of a server that somebody else has started, they may run and end.
    for (const auto id : ids)
      n_bad += client_.at(id).ok() && (process_ == nullptr || !client_.at(id).has_ended()) ? 0 : 1;
    std::optional<double> grown_mb;
    if (process_ != nullptr) grown_mb = process_->resident_mb() - before_mb;
    drop(ids);
    MILLRACE_TRY(wait_idle());
    const std::string what = fmt::format("{} open streams", sizes_.n_open);
    return std::vector<Figure>{{what + ", memory", grown_mb, "MB", 100, false,
                                fmt::format("{} run, others wait", kHolders)},
                               {what + ", errors", n_bad, "", 0, false, ""}};
  }

  Result<std::vector<Figure>> long_prompt() {
    const int64_t n = std::min(sizes_.n_long_prompt, n_ctx_ - kShortPrompt);
    MILLRACE_ASSIGN(const Ids streams, send(4, longest_answer()));
    MILLRACE_TRY(wait_texts(streams, 4));
    MILLRACE_ASSIGN(const auto id, client_.send(kPath, body(n, 1, true)));
    std::vector<double> steps_ms;
    if (process_ == nullptr) {
      MILLRACE_ASSIGN(steps_ms, watch_steps(id));
    } else {
      MILLRACE_TRY(wait_all({id}));
    }
    const Fetched& prompt = client_.at(id);
    if (!prompt.ok())
      return error(Code::unavailable, "a prompt of {} tokens failed: {}", n, prompt.failure);
    const std::vector<double> gaps_ms = gaps(streams, prompt.sent_ns, prompt.ended_ns);
    drop(streams);
    MILLRACE_TRY(wait_idle());
    // Of a server that somebody else has started, its steps tell, if it showed any.
    std::optional<double> chunk_ms;
    if (process_ != nullptr)
      chunk_ms = kChunkMs;
    else if (!steps_ms.empty())
      chunk_ms = percentile(steps_ms, 0.5);
    if (gaps_ms.empty())
      return error(Code::unavailable, "no token came while the prompt of {} tokens was computed",
                   n);
    Figure gap{
        .what = "token gap during a long prompt, p99",
        .value = percentile(gaps_ms, 0.99),
        .unit = "ms",
        .note = fmt::format("4 streams; {} tokens arrive and take {:.1f} s", n, prompt.seconds())};
    if (chunk_ms) {
      gap.target = 2 * *chunk_ms;
      gap.note += fmt::format("; a chunk has {:.0f} ms", *chunk_ms);
    }
    return std::vector<Figure>{gap};
  }

  Result<std::vector<Figure>> idle() {
    Figure out{.what = "idle CPU time", .unit = "%", .target = 1, .note = "of one core"};
    if (process_ != nullptr) {
      const double before_s = process_->cpu_seconds();
      MILLRACE_TRY(client_.idle(sizes_.idle_s));
      out.value = 100 * (process_->cpu_seconds() - before_s) / sizes_.idle_s;
    }
    return std::vector<Figure>{out};
  }

 private:
  static constexpr std::string_view kPath = "/v1/completions";

  std::string body(int64_t n_prompt, int64_t n_tokens, bool stream) {
    std::vector<int32_t> prompt(static_cast<size_t>(n_prompt));
    for (int32_t& id : prompt) id = ids_[random_() % ids_.size()];
    return json_text(json{{"prompt", prompt},
                          {"max_tokens", n_tokens},
                          {"temperature", 0},
                          {"ignore_eos", true},
                          {"stream", stream}});
  }
  int64_t longest_answer() const { return std::min<int64_t>(n_ctx_ - kShortPrompt, 8192); }

  Result<Ids> send(int n, int64_t n_tokens) {
    Ids out;
    for (int i = 0; i < n; ++i) {
      MILLRACE_ASSIGN(const auto id, client_.send(kPath, body(kShortPrompt, n_tokens, true)));
      out.push_back(id);
      MILLRACE_TRY(client_.wait([] { return true; }, 1));
    }
    return out;
  }
  Status wait_all(const Ids& ids) {
    return client_.wait(
        [&] {
          return std::all_of(ids.begin(), ids.end(),
                             [&](auto id) { return client_.at(id).has_ended(); });
        },
        kLoadS);
  }
  Status wait_texts(const Ids& ids, size_t n) {
    MILLRACE_TRY(client_.wait(
        [&] {
          return std::all_of(ids.begin(), ids.end(), [&](auto id) {
            return client_.at(id).has_ended() || client_.at(id).text_ns.size() >= n;
          });
        },
        kLoadS));
    for (const auto id : ids)
      if (client_.at(id).has_ended())
        return error(Code::unavailable, "a stream ended too early: status {} {}",
                     client_.at(id).status, client_.at(id).failure);
    return {};
  }
  void drop(const Ids& ids) {
    for (const auto id : ids) client_.drop(id);
  }
  bool is_whole(LoadClient::Id id, int64_t n_tokens) {
    const auto n = timing(client_.at(id), "predicted_n");
    return client_.at(id).ok() && n.ok() && n.value() == static_cast<double>(n_tokens);
  }

  // Tokens a second of n streams together, from the first text to the last end.
  Result<double> rate(int n) {
    MILLRACE_ASSIGN(const Ids ids, send(n, sizes_.n_stream_tokens));
    MILLRACE_TRY(wait_all(ids));
    int64_t first_ns = INT64_MAX, last_ns = 0;
    for (const auto id : ids) {
      const Fetched& one = client_.at(id);
      if (!is_whole(id, sizes_.n_stream_tokens) || one.text_ns.empty())
        return error(Code::unavailable, "a stream failed: status {} {}", one.status, one.failure);
      first_ns = std::min(first_ns, one.text_ns.front());
      last_ns = std::max(last_ns, one.ended_ns);
    }
    return static_cast<double>(n * (sizes_.n_stream_tokens - 1)) /
           seconds_between(first_ns, last_ns);
  }

  std::vector<double> gaps(const Ids& ids, int64_t start_ns, int64_t end_ns) const {
    std::vector<double> out;
    for (const auto id : ids) {
      const auto& at = client_.at(id).text_ns;
      for (size_t i = 1; i < at.size(); ++i)
        if (at[i] > start_ns && at[i] <= end_ns)
          out.push_back(seconds_between(at[i - 1], at[i]) * 1e3);
    }
    return out;
  }

  Result<json> engine() {
    MILLRACE_ASSIGN(const Fetched fetched, client_.fetch("/debug/engine", ""));
    return parse_json(fetched.body, "/debug/engine");
  }
  Status wait_idle() {
    for (const int64_t start_ns = now_ns(); seconds_between(start_ns, now_ns()) < kLoadS;) {
      MILLRACE_ASSIGN(const json state, engine());
      if (state.at("running").empty() && state.at("waiting").empty()) return {};
      MILLRACE_TRY(client_.idle(0.02));
    }
    return error(Code::unavailable, "the server is still busy after {:g} s", kLoadS);
  }

  // Times of the steps between two looks that both saw the prompt being computed. The server shows
  // its last steps; those behind the last one that was seen before are new.
  Result<std::vector<double>> watch_steps(LoadClient::Id id) {
    std::vector<double> out, before;
    bool was_prefill = false;
    for (const int64_t start_ns = now_ns(); !client_.at(id).has_ended();) {
      if (seconds_between(start_ns, now_ns()) > kLoadS)
        return error(Code::unavailable, "the prompt was not computed in {:g} s", kLoadS);
      MILLRACE_ASSIGN(const json state, engine());
      const auto steps = state.at("step_ms").get<std::vector<double>>();
      const bool is_prefill = std::any_of(state["running"].begin(), state["running"].end(),
                                          [](const json& r) { return r.at("phase") == "prefill"; });
      if (is_prefill && was_prefill && steps != before) {
        const auto seen = std::find(steps.rbegin(), steps.rend(), before.back());
        out.insert(out.end(), seen == steps.rend() ? steps.begin() : seen.base(), steps.end());
      }
      was_prefill = is_prefill && !steps.empty();
      before = steps;
      const Status waited = client_.wait([&] { return client_.at(id).has_ended(); }, 0.1);
      if (waited.code() == Code::cancelled) return waited;
    }
    return out;
  }

  LoadClient& client_;
  const ServerProcess* process_;
  const Sizes sizes_;
  std::vector<int32_t> ids_;
  int64_t n_ctx_ = 0;
  std::mt19937 random_{1};
};

// ---- the table

// Three digits, and no powers of ten.
std::string number_text(double value) {
  return std::abs(value) >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::string value_text(const Figure& figure) {
  if (!figure.value) return "-";
  return number_text(*figure.value) + (figure.unit.empty() ? "" : " " + figure.unit);
}

std::string target_text(const Figure& figure) {
  if (!figure.target) return "";
  if (figure.is_count()) return "none";
  return fmt::format("{} {} {}", figure.at_least ? ">=" : "<", number_text(*figure.target),
                     figure.unit);
}

std::string verdict(const Figure& figure) {
  if (!figure.target) return "";
  return !figure.value ? "not measured" : figure.is_missed() ? "MISSED" : "holds";
}

void print(const Figure& figure) {
  std::string line = fmt::format("{:<38} {:>14}  {:<14} {:<12} {}", figure.what, value_text(figure),
                                 target_text(figure), verdict(figure), figure.note);
  line.resize(line.find_last_not_of(' ') + 1);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

json to_json(const Figure& figure) {
  json out = {{"what", figure.what}, {"unit", figure.unit}, {"note", figure.note}};
  out["value"] = figure.value ? json(*figure.value) : json();
  out["target"] = figure.target ? json(*figure.target) : json();
  out["at_least"] = figure.at_least;
  out["missed"] = figure.is_missed();
  return out;
}

// ---- all of it, in order

class Run {
 public:
  explicit Run(const BenchServeOptions& options)
      : options_(options), sizes_(options.quick ? kQuick : Sizes{}) {}

  Status all() {
    serve::raise_file_limit(sizes_.n_open + 64);
    if (!options_.json)
      fmt::print("{:<38} {:>14}  {}\n", options_.url.empty() ? options_.model : options_.url,
                 "measured", "target");
    MILLRACE_TRY(with_server({}, [this](Bench& bench) { return usual(bench); }));
    MILLRACE_TRY(with_server({"--parallel", std::to_string(sizes_.n_active)},
                             [this](Bench& bench) { return add(bench.active()); }));
    return with_server({"--parallel", std::to_string(kHolders)},
                       [this](Bench& bench) { return add(bench.open()); });
  }

  const std::vector<Figure>& figures() const { return figures_; }

 private:
  template <class Measure>
  Status with_server(const std::vector<std::string>& more, Measure&& measure) {
    std::unique_ptr<ServerProcess> process;
    if (options_.url.empty()) {
      MILLRACE_ASSIGN(process, ServerProcess::start(arguments(more)));
    }
    MILLRACE_ASSIGN(const auto client, LoadClient::to(process ? process->url() : options_.url));
    Bench bench(*client, process.get(), sizes_);
    MILLRACE_TRY(bench.prepare());
    return measure(bench);
  }

  std::vector<std::string> arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> out = {"-m", options_.model, "--chunk-ms",
                                    fmt::format("{}", kChunkMs)};
    if (options_.threads > 0) out.insert(out.end(), {"-t", std::to_string(options_.threads)});
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }

  Status usual(Bench& bench) {
    MILLRACE_TRY(add(bench.overhead()));
    MILLRACE_ASSIGN(const Bench::Rates rates, bench.rates());
    MILLRACE_TRY(one_stream(rates.one));
    add({.what = "8 streams",
         .value = rates.eight,
         .unit = "tokens/s",
         .note = fmt::format("{} tokens each", sizes_.n_stream_tokens)});
    add({.what = "8 streams over one",
         .value = rates.ratio,
         .unit = "x",
         .target = 4,
         .at_least = true,
         .note = "median of the rounds"});
    MILLRACE_TRY(add(bench.long_prompt()));
    return add(bench.idle());
  }

  // Beside the same steps without a server: a process of its own, as a server is.
  Status one_stream(double rate) {
    add({.what = "one stream",
         .value = rate,
         .unit = "tokens/s",
         .note = fmt::format("{} tokens", sizes_.n_stream_tokens)});
    if (options_.model.empty()) return {};
    std::vector<std::string> args = {"bench",      "-m", options_.model, "--json",
                                     "--no-store", "-p", "16",           "-d"};
    args.insert(args.end(),
                {std::to_string(kShortPrompt), "-n", std::to_string(sizes_.n_stream_tokens), "-r",
                 std::to_string(sizes_.n_repeats)});
    if (options_.threads > 0) args.insert(args.end(), {"-t", std::to_string(options_.threads)});
    MILLRACE_ASSIGN(const std::string text, output_of(args));
    MILLRACE_ASSIGN(const json said, parse_json(text, "bench MODEL"));
    const double bare = said.at("decode").at(0).at("tok_s").get<double>();
    add({.what = "bench MODEL, decode", .value = bare, .unit = "tokens/s"});
    add({.what = "one stream over bench MODEL",
         .value = rate / bare,
         .unit = "x",
         .target = 0.9,
         .at_least = true});
    return {};
  }

  void add(const Figure& figure) {
    figures_.push_back(figure);
    if (!options_.json) print(figure);
  }
  Status add(const Result<std::vector<Figure>>& figures) {
    MILLRACE_TRY(figures.status());
    for (const Figure& figure : figures.value()) add(figure);
    return {};
  }

  const BenchServeOptions options_;
  const Sizes sizes_;
  std::vector<Figure> figures_;
};

bool record(const std::vector<Figure>& figures, const BenchServeOptions& options) {
  Recorder recorder;
  if (const Status status = recorder.begin(options.recording, "serve", "", find_machine());
      !status.ok()) {
    fmt::print(stderr, "millrace: the run was not stored: {}\n", status.message());
    return false;
  }
  std::vector<lab::Metric> metrics;
  for (const Figure& figure : figures)
    if (figure.value)
      metrics.push_back(lab::metric_of(
          lab::Subject{"serve", options.url.empty() ? options.model : options.url, figure.what, "",
                       options.quick ? "quick" : "", options.threads},
          "value", figure.unit, figure.at_least || figure.unit == "tokens/s" ? "higher" : "lower",
          {*figure.value}));
  recorder.add_metrics(metrics);
  recorder.end("done");
  return recorder.report(!options.json);
}

}  // namespace

int bench_serve(const BenchServeOptions& options) {
  Run run(options);
  const Status status = run.all();
  if (!status.ok()) return fail(status);
  const auto n_missed = std::count_if(run.figures().begin(), run.figures().end(),
                                      [](const Figure& one) { return one.is_missed(); });
  if (options.json) {
    json rows = json::array();
    for (const Figure& figure : run.figures()) rows.push_back(to_json(figure));
    print_json(json{{"model", options.model},
                    {"url", options.url},
                    {"quick", options.quick},
                    {"missed", n_missed},
                    {"figures", rows}});
  }
  if (options.quick && !options.json)
    fmt::print("\n--quick shows that everything works; do not quote these times\n");
  const bool stored = record(run.figures(), options);
  return (n_missed > 0 && !options.quick) || !stored ? kFailed : 0;
}

}  // namespace millrace::cli
