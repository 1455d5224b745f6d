// millrace replay: plays a trace of agent sessions against a server and says what each turn cost:
// the time to its first token, and how much of what was computed before was computed again.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/progress.h"
#include "cli/bench_serve_process.h"
#include "cli/commands.h"
#include "cli/recorder.h"
#include "cli/replay_drive.h"
#include "cli/replay_simulate.h"
#include "files/json.h"

namespace millrace::cli {
namespace {

using nlohmann::json;

constexpr size_t kMaxTrace = size_t{256} << 20;
constexpr double kModelsS = 30;  // for the list of models

struct Options {
  std::string trace, url, api_key, model, serve, simulate;
  double speed = 1, kill_share = 2;
  int n_at_once = 0;
  int64_t memory_tokens = 0, disk_tokens = 0;
  bool twins = false, json = false, silent = false;
  Recording recording = {};
};

// The middle, the ninth decile and the greatest.
struct Spread {
  double median = 0, p90 = 0, most = 0;
};

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
    return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
  };
  return {at(0.5), at(0.9), values.back()};
}

// What all turns of one kind cost together.
struct Summary {
  std::string what = {};
  std::vector<double> first_s = {}, twin_ratio = {};
  int64_t n_prompt = 0, n_cached = 0, n_disk = 0, n_history = 0, n_recomputed = 0, worst = 0;

  void add(const TurnCost& cost) {
    first_s.push_back(cost.first_s);
    if (cost.twin_s) twin_ratio.push_back(cost.first_s / *cost.twin_s);
    n_prompt += cost.n_prompt;
    n_cached += cost.n_cached;
    n_disk += cost.n_disk;
    n_history += cost.n_history;
    n_recomputed += cost.n_recomputed();
    worst = std::max(worst, cost.n_recomputed());
  }
  double recomputed_percent() const {
    return n_history == 0
               ? 0
               : 100 * static_cast<double>(n_recomputed) / static_cast<double>(n_history);
  }
};

std::vector<Summary> summaries_of(const std::vector<TurnCost>& costs, bool was_killed) {
  std::vector<Summary> out = {{"turns without a history"}, {"turns with a history"}};
  if (was_killed) out.push_back({"  of these, first after the kill"});
  std::vector<size_t> seen;
  for (const TurnCost& cost : costs) {
    out[cost.is_later ? 1 : 0].add(cost);
    const bool is_first_seen =
        cost.is_after_kill && std::find(seen.begin(), seen.end(), cost.session) == seen.end();
    if (is_first_seen) seen.push_back(cost.session);
    if (is_first_seen && cost.is_later) out[2].add(cost);
  }
  return out;
}

void print(const Summary& one) {
  const Spread first = spread_of(one.first_s);
  fmt::print("{:<32} {:>5} {:>9.3f} {:>9.3f} {:>9.3f} {:>10} {:>10} {:>9} {:>10} {:>7.2f}\n",
             one.what, one.first_s.size(), first.median, first.p90, first.most, one.n_prompt,
             one.n_cached, one.n_disk, one.n_recomputed, one.recomputed_percent());
}

json to_json(const Summary& one) {
  const Spread first = spread_of(one.first_s);
  json out = {
      {"what", one.what},
      {"turns", one.first_s.size()},
      {"first_token_s", {{"median", first.median}, {"p90", first.p90}, {"max", first.most}}},
      {"prompt_tokens", one.n_prompt},
      {"cached_tokens", one.n_cached},
      {"cached_from_disk_tokens", one.n_disk},
      {"history_tokens", one.n_history},
      {"recomputed_tokens", one.n_recomputed},
      {"recomputed_most_in_a_turn", one.worst}};
  if (!one.twin_ratio.empty()) out["first_token_over_twin"] = spread_of(one.twin_ratio).median;
  return out;
}

json to_json(const TurnCost& cost, const Trace& trace) {
  const TraceSession& session = trace.sessions[cost.session];
  json out = {{"session", session.id},
              {"turn", cost.turn},
              {"tool", session.turns[cost.turn].tool},
              {"first_token_s", cost.first_s},
              {"seconds", cost.all_s},
              {"prompt_tokens", cost.n_prompt},
              {"cached_tokens", cost.n_cached},
              {"cached_from_disk_tokens", cost.n_disk},
              {"history_tokens", cost.n_history},
              {"recomputed_tokens", cost.n_recomputed()},
              {"answer_tokens", cost.n_answer},
              {"after_kill", cost.is_after_kill}};
  if (cost.twin_s) out["twin_first_token_s"] = *cost.twin_s;
  return out;
}

class Replay {
 public:
  explicit Replay(const Options& options) : options_(options) {}

  Status run() {
    MILLRACE_ASSIGN(const std::string text, read_text_file(options_.trace, kMaxTrace));
    MILLRACE_ASSIGN(trace_, parse_trace(text, options_.trace));
    Progress progress("replay");
    const auto n_turns = static_cast<double>(trace_.n_turns());
    const auto on_turn = [&](size_t n_done) {
      if (!options_.json)
        progress.at(static_cast<double>(n_done) / n_turns,
                    fmt::format("{} of {:.0f} turns", n_done, n_turns));
    };
    if (!options_.simulate.empty()) return run_simulation(on_turn);
    MILLRACE_ASSIGN(auto client, connect());
    MILLRACE_ASSIGN(const std::string model, first_model(*client));
    const DriveOptions how{.model = model,
                           .headers = headers(),
                           .speed = options_.speed,
                           .n_at_once = options_.n_at_once,
                           .twins = options_.twins,
                           .kill_share = options_.kill_share,
                           .kill = [this] { return kill(); },
                           .on_turn = on_turn};
    MILLRACE_ASSIGN(costs_, drive(trace_, std::move(client), how));
    return {};
  }

  void report() const {
    const std::vector<Summary> all = summaries_of(costs_, options_.kill_share <= 1);
    if (options_.json) return report_json(all);
    fmt::print("{:<32} {:>5} {:>29} {:>10} {:>10} {:>9} {:>18}\n", trace_.name, "turns",
               "first token, s: median p90 max", "prompt", "cached", "from disk", "recomputed, %");
    for (const Summary& one : all) print(one);
    if (!all[1].twin_ratio.empty())
      fmt::print(
          "first token over that of a twin with all pages at hand: median {:.3f}, p90 {:.3f}\n",
          spread_of(all[1].twin_ratio).median, spread_of(all[1].twin_ratio).p90);
    fmt::print("recomputed in one turn at most: {} tokens\n", all[1].worst);
  }

  bool record() const {
    Recorder recorder;
    if (const Status status = recorder.begin(options_.recording, "replay", "", find_machine());
        !status.ok()) {
      fmt::print(stderr, "millrace: the run was not stored: {}\n", status.message());
      return false;
    }
    const std::string server =
        options_.url.empty() ? options_.model + " " + options_.serve : options_.url;
    std::vector<lab::Metric> metrics;
    for (const Summary& one : summaries_of(costs_, options_.kill_share <= 1)) {
      if (one.first_s.empty()) continue;
      const lab::Subject subject{"replay", trace_.name, one.what, server, "", 0};
      metrics.push_back(lab::metric_of(subject, "first token", "s", "lower", one.first_s));
      metrics.push_back(lab::metric_of(subject, "recomputed", "tokens", "lower",
                                       {static_cast<double>(one.n_recomputed)}));
      metrics.push_back(lab::metric_of(subject, "history", "tokens", "higher",
                                       {static_cast<double>(one.n_history)}));
    }
    recorder.add_metrics(metrics);
    recorder.end("done");
    return recorder.report(!options_.json);
  }

 private:
  std::string headers() const {
    return options_.api_key.empty() ? ""
                                    : fmt::format("Authorization: Bearer {}\r\n", options_.api_key);
  }

  // Some servers answer only to the name of what they serve.
  Result<std::string> first_model(LoadClient& client) const {
    MILLRACE_ASSIGN(const auto id, client.send("/v1/models", "", {.headers = headers()}));
    MILLRACE_TRY(client.wait([&] { return client.at(id).has_ended(); }, kModelsS));
    const Fetched& fetched = client.at(id);
    const auto list = parse_json(fetched.ok() ? fetched.body : "{}", "the list of models");
    const json::json_pointer name("/data/0/id");
    if (!list.ok() || !list.value().contains(name) || !list.value().at(name).is_string())
      return std::string("default");
    return list.value().at(name).get<std::string>();
  }

  Status run_simulation(const std::function<void(size_t)>& on_turn) {
    const SimulateOptions how{
        .policy = options_.simulate == "lru" ? KvPolicy::lru : KvPolicy::value,
        .memory_tokens = options_.memory_tokens,
        .disk_tokens = options_.disk_tokens,
        .is_silent = options_.silent,
        .on_turn = on_turn};
    MILLRACE_ASSIGN(Simulated simulated, simulate(trace_, how));
    costs_ = std::move(simulated.costs);
    if (!options_.json)
      fmt::print("simulated: contexts of {} tokens, {} in memory, {} on disk\n",
                 simulated.context_tokens, simulated.memory_tokens, simulated.disk_tokens);
    return {};
  }

  Result<std::unique_ptr<LoadClient>> connect() {
    if (!options_.url.empty()) return LoadClient::to(options_.url);
    std::vector<std::string> args = {"-m", options_.model};
    std::istringstream words(options_.serve);
    for (std::string word; words >> word;) args.push_back(word);
    MILLRACE_ASSIGN(server_, ServerProcess::start(args));
    return LoadClient::to(server_->url());
  }
  Result<std::unique_ptr<LoadClient>> kill() {
    server_->kill_now();
    return connect();
  }

  void report_json(const std::vector<Summary>& all) const {
    json turns = json::array(), summaries = json::array();
    for (const TurnCost& cost : costs_) turns.push_back(to_json(cost, trace_));
    for (const Summary& one : all) summaries.push_back(to_json(one));
    print_json(json{
        {"trace", trace_.name}, {"seed", trace_.seed}, {"summaries", summaries}, {"turns", turns}});
  }

  const Options& options_;
  Trace trace_;
  std::unique_ptr<ServerProcess> server_;
  std::vector<TurnCost> costs_;
};

int run_replay(const Options& options) {
  const bool is_simulated = !options.simulate.empty();
  if (is_simulated && (!options.url.empty() || !options.model.empty()))
    return fail(
        error(Code::invalid_argument, "--simulate needs no server: leave out --url and -m"));
  if (!is_simulated && options.url.empty() == options.model.empty())
    return fail(
        error(Code::invalid_argument,
              "replay needs a server: --url http://127.0.0.1:8080, or -m MODEL to start one"));
  if (!std::all_of(options.api_key.begin(), options.api_key.end(),
                   [](char c) { return c > 0x20 && c < 0x7f; }))
    return fail(error(Code::invalid_argument, "--api-key has characters that no key has"));
  if (options.kill_share <= 1 && options.model.empty())
    return fail(error(Code::invalid_argument, "--kill-after needs a server of its own: -m MODEL"));
  Replay replay(options);
  if (const Status status = replay.run(); !status.ok()) return fail(status);
  replay.report();
  return is_simulated || replay.record() ? 0 : kFailed;
}

}  // namespace

void add_replay(App& app, const std::string& command_line) {
  auto options = std::make_shared<Options>();
  options->recording.command = command_line;
  Command command =
      app.add("replay", "Play a trace of agent sessions against a server and measure each turn");
  command.option("TRACE", options->trace, "Trace file (tools/make_trace writes one)").required();
  command.option("--url", options->url, "Server to measure: any that speaks OpenAI's chat API")
      .type_name("URL");
  command
      .option("--api-key", options->api_key,
              "Key of the server, where it has keys (or set MILLRACE_REPLAY_API_KEY: other users "
              "see what is typed)")
      .type_name("KEY");
  command.option("-m,--model", options->model, "Start a server from this model instead")
      .type_name("MODEL");
  command
      .option("--serve", options->serve,
              "Options of that server, in one argument: '--kv-memory 1G -t 2'")
      .type_name("OPTIONS");
  command.option("--speed", options->speed, "Divide the trace's gaps by this (default: 1)")
      .real_range(0.001, 1e6);
  command
      .option("--at-once", options->n_at_once,
              "Turns in flight at most (default: as many as the trace has due)")
      .range(1, 10000);
  command.flag("--twins", options->twins,
               "After each turn, time a request that differs in its last message alone, with all "
               "pages in memory; turns go one at a time");
  command
      .option(
          "--kill-after", options->kill_share,
          "Kill the server (SIGKILL) after this share of the turns and start it again; needs -m")
      .real_range(0, 1);
  command
      .option("--simulate", options->simulate,
              "Play it without a model and a server, and count what this policy would compute "
              "again: value or lru")
      .one_of({"value", "lru"});
  command
      .option("--memory-tokens", options->memory_tokens,
              "Tokens that the simulated memory holds (default: a sixteenth of the contexts)")
      .range(1, 1 << 30);
  command
      .option("--disk-tokens", options->disk_tokens,
              "Tokens that the simulated disk holds (default: three sixteenths)")
      .range(1, 1 << 30);
  command.flag("--silent", options->silent,
               "Simulate clients that name neither their sessions nor their tools");
  command.option("--db", options->recording.db, "Database of runs (default: the user's own)")
      .type_name("FILE");
  command.flag("--no-store", options->recording.no_store, "Do not store the run");
  command.flag("--json", options->json, "Print JSON: every turn, and the sums");
  command.settings("MILLRACE_REPLAY");
  command.runs([options] { return run_replay(*options); });
}

}  // namespace millrace::cli
