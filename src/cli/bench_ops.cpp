#include "cli/bench_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/bench_steps.h"
#include "cli/commands.h"
#include "cli/recorder.h"
#include "lab/report.h"
#include "lab/row.h"
#include "lab/stats.h"
#include "machine/ceilings.h"

namespace millrace::cli {
namespace {

// Enough for a median; a step of a large model takes half a second.
constexpr int64_t kMostSteps = 16;

// Calls of one op, or of one op and shape.
struct Group {
  std::string op, key, variant;  // no key: of all shapes
  size_t n_calls = 0;
  double bytes = 0;                            // of a step, by the floor
  std::vector<double> us = {}, floor_us = {};  // by step

  double time_us() const { return lab::median(us); }
  double gbps() const { return 1e-3 * bytes / time_us(); }
  double floor_share() const {
    std::vector<double> shares;
    for (size_t i = 0; i < us.size(); ++i) shares.push_back(floor_us[i] / us[i]);
    return lab::median(shares);
  }
};

struct Table {
  std::vector<Group> rows = {};  // the longest first
  std::map<std::string, size_t> index = {};

  Group& at(const std::string& op, const std::string& key, std::string_view variant) {
    const auto [found, is_new] = index.emplace(op + ' ' + key, rows.size());
    if (is_new) rows.push_back({.op = op, .key = key, .variant = std::string(variant)});
    Group& group = rows[found->second];
    if (group.variant != variant) group.variant = "several";
    return group;
  }
  double share(const Group& group) const {
    double all_us = 0;
    for (const Group& other : rows) all_us += other.time_us();
    return group.time_us() / all_us;
  }
};

struct StepCost {
  std::string what;  // decode or prefill
  int64_t n_rows = 0, context = 0;
  size_t n_calls = 0, n_barriers = 0;
  std::vector<double> step_us = {};  // as the engine runs it
  std::vector<double> fenced_us = {};
  Table by_op = {}, by_shape = {};

  double step() const { return lab::median(step_us); }
  double fenced() const { return lab::median(fenced_us); }
};

// Weights and KV are read from memory; what a step makes and reads again lies in the caches, as do
// the rows of KV that it stores.
bool reads_memory(const LoweredCall& call, const StepSpec& spec) {
  if (call.layer >= 0) return !call.out.empty();
  return std::any_of(call.weights.begin(), call.weights.end(), [&](int w) {
    const WeightForm form = spec.weights[static_cast<size_t>(w)].form;
    return form != WeightForm::vector && form != WeightForm::turns;
  });
}

class OpTimer {
 public:
  OpTimer(ModelSession& session) : session_(session), probe_(session.machine(), session.team()) {}

  // One step as the engine runs it, then call by call.
  Status step(StepRunner& runner, std::span<const int32_t> tokens, StepCost& cost) {
    const int64_t start_ns = now_ns();
    MILLRACE_TRY(runner.step(tokens));
    cost.step_us.push_back(1e-3 * static_cast<double>(now_ns() - start_ns));
    constexpr MacType kTypes[] = {MacType::i8, MacType::f32};
    return time_calls(std::ssize(tokens), lab::roof_of(probe_.now(kTypes)), cost);
  }

 private:
  Status time_calls(int64_t n_rows, const lab::Roof& roof, StepCost& cost) {
    Network& network = session_.engine().network();
    const Lowered& lowered = network.program().lowered();
    MILLRACE_ASSIGN(Program * program, network.program().bound_for(n_rows, 1));
    cost.n_calls = program->n_calls();
    cost.n_barriers = program->n_barriers();
    const size_t n_before = cost.fenced_us.size();
    cost.fenced_us.push_back(0);
    for (size_t i = 0; i < program->n_calls(); ++i) {
      const Program::Call& call = program->calls()[i];
      const LoweredCall& from = lowered.calls[i];
      MILLRACE_ASSIGN(const int64_t ns, program->time_ns(session_.team(), i, i + 1, 1));
      const double us = 1e-3 * static_cast<double>(ns);
      cost.fenced_us.back() += us;
      const Floor floor = from.op->floor(call.args.bytes);
      const double floor_us = lab::floor_time(floor, roof, reads_memory(from, network.spec())).us;
      const std::string op(from.op->name);
      for (Group* group :
           {&cost.by_op.at(op, "", call.variant->name),
            &cost.by_shape.at(op, from.op->key(call.args.bytes), call.variant->name)}) {
        if (group->us.size() == n_before) {  // its first call of this step
          group->us.push_back(0);
          group->floor_us.push_back(0);
          group->n_calls = 0;
          group->bytes = 0;
        }
        ++group->n_calls;
        group->bytes += floor.read_bytes + floor.write_bytes;
        group->us.back() += us;
        group->floor_us.back() += floor_us;
      }
    }
    return {};
  }

  ModelSession& session_;
  CeilingProbe probe_;
};

void sort(Table& table) {
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const Group& a, const Group& b) { return a.time_us() > b.time_us(); });
}

Result<StepCost> cost_of_decode(ModelSession& session, const BenchModelOptions& options,
                                int64_t context) {
  StepCost cost{.what = "decode", .n_rows = 1, .context = context};
  StepRunner runner(session.engine());
  OpTimer timer(session);
  MILLRACE_TRY(runner.begin(context));
  const int64_t n = std::min(options.n_decode, kMostSteps);
  for (int64_t i = 0; i < n; ++i) MILLRACE_TRY(timer.step(runner, runner.tokens(1), cost));
  return cost;
}

// The last step of a prompt of n tokens.
Result<StepCost> cost_of_prefill(ModelSession& session, const BenchModelOptions& options,
                                 int64_t n) {
  const int64_t n_rows = std::min(n, session.engine().options().max_rows);
  StepCost cost{.what = "prefill", .n_rows = n_rows, .context = n - n_rows};
  StepRunner runner(session.engine());
  OpTimer timer(session);
  for (int i = 0; i < std::max(options.repeats, 1); ++i) {
    MILLRACE_TRY(runner.begin(cost.context));
    MILLRACE_TRY(timer.step(runner, runner.tokens(n_rows), cost));
  }
  return cost;
}

std::string share_text(double share) {
  return share > 0 ? fmt::format("{:.0f} %", 100 * share) : std::string("-");
}

void print(const Table& table, bool with_shapes) {
  size_t width = 13;
  for (const Group& g : table.rows) width = std::max(width, g.variant.size());
  fmt::print("\n{:<13} {:<{}} {:>5} {:>10} {:>7} {:>8} {:>10}{}\n", "op", "variant", width, "calls",
             "us a step", "share", "GB/s", "% of floor", with_shapes ? "  shape" : "");
  for (const Group& g : table.rows)
    fmt::print("{:<13} {:<{}} {:>5} {:>10} {:>7} {:>8} {:>10}{}{}\n", g.op, g.variant, width,
               g.n_calls, lab::short_number(g.time_us()),
               fmt::format("{:.1f} %", 100 * table.share(g)), lab::short_number(g.gbps()),
               share_text(g.floor_share()), with_shapes ? "  " : "", g.key);
}

void print(const StepCost& cost) {
  fmt::print("\n{} step: {} {} after {} in the context\n", cost.what, cost.n_rows,
             cost.n_rows == 1 ? "token" : "tokens", cost.context);
  print(cost.by_op, false);
  print(cost.by_shape, true);
  fmt::print(
      "\n{} calls, one at a time: {} us; the whole step as it runs, with {} barriers: {} us "
      "({:.0f} tok/s)\n",
      cost.n_calls, lab::short_number(cost.fenced()), cost.n_barriers,
      lab::short_number(cost.step()), 1e6 * static_cast<double>(cost.n_rows) / cost.step());
}

nlohmann::json to_json(const Table& table) {
  auto rows = nlohmann::json::array();
  for (const Group& g : table.rows) {
    nlohmann::json row = {
        {"op", g.op},        {"variant", g.variant},          {"calls", g.n_calls},
        {"us", g.time_us()}, {"share", table.share(g)},       {"bytes", g.bytes},
        {"gb_s", g.gbps()},  {"floor_share", g.floor_share()}};
    if (!g.key.empty()) row["shape"] = g.key;
    rows.push_back(std::move(row));
  }
  return rows;
}

nlohmann::json to_json(const StepCost& cost) {
  return {{"tokens", cost.n_rows},           {"context", cost.context},
          {"calls", cost.n_calls},           {"barriers", cost.n_barriers},
          {"steps", cost.step_us.size()},    {"step_us", cost.step()},
          {"fenced_us", cost.fenced()},      {"ops", to_json(cost.by_op)},
          {"shapes", to_json(cost.by_shape)}};
}

Result<std::vector<StepCost>> measure(ModelSession& session, const BenchModelOptions& options) {
  std::vector<StepCost> out;
  for (const int64_t context : options.contexts) {
    MILLRACE_ASSIGN(StepCost cost, cost_of_decode(session, options, context));
    out.push_back(std::move(cost));
  }
  for (const int64_t n : options.prompts) {
    MILLRACE_ASSIGN(StepCost cost, cost_of_prefill(session, options, n));
    out.push_back(std::move(cost));
  }
  for (StepCost& cost : out) {
    sort(cost.by_op);
    sort(cost.by_shape);
  }
  return out;
}

// Said once, below the tables.
void print_notes(const std::vector<StepCost>& costs) {
  double most = 0;
  for (const StepCost& cost : costs)
    for (const Group& g : cost.by_shape.rows) most = std::max(most, g.floor_share());
  if (most > 1.05)
    fmt::print(
        "\nshares above 100 % (here up to {:.0f} %): the floor reads weights from memory, and "
        "those "
        "that\nstay in a cache from one step to the next beat it\n",
        100 * most);
}

// Steps as they run and call by call, in the same rounds, and how often lanes wait in one; and
// "op_time" of every op, which the lab's page draws as the step's make-up.
std::vector<lab::Metric> metrics_of(const StepCost& cost, const std::string& model, int n_lanes) {
  const std::string what = fmt::format("{} step of {} at {}", cost.what, cost.n_rows, cost.context);
  const lab::Subject whole{"model", model, what, "program", "cpu", n_lanes};
  lab::Subject fenced = whole;
  fenced.variant = "call_by_call";
  std::vector<lab::Metric> out = {
      lab::metric_of(whole, "time", "us", "lower", cost.step_us),
      lab::metric_of(fenced, "time", "us", "lower", cost.fenced_us),
      lab::metric_of(whole, "waits", "waits", "lower", {static_cast<double>(cost.n_barriers)}),
      lab::metric_of(fenced, "waits", "waits", "lower", {static_cast<double>(cost.n_calls)})};
  for (const Group& group : cost.by_op.rows)
    out.push_back(lab::metric_of(lab::Subject{"model", model, what, group.op, "cpu", n_lanes},
                                 "op_time", "us", "lower", group.us));
  return out;
}

bool store(const std::vector<StepCost>& costs, const BenchModelOptions& options,
           ModelSession& session) {
  Recorder recorder;
  if (const Status status = recorder.begin(options.recording, "model", "cpu", session.machine());
      !status.ok()) {
    fmt::print(stderr, "millrace: the run was not stored: {}\n", status.message());
    return false;
  }
  for (const StepCost& cost : costs)
    recorder.add_metrics(metrics_of(cost, options.model, session.team().size()));
  recorder.end("done");
  return recorder.report(!options.json);
}

}  // namespace

int bench_ops(const BenchModelOptions& options) {
  auto session = load_for_steps(options, kMostSteps);
  if (!session.ok()) return fail(session.status());
  ModelSession& s = *session.value();
  auto costs = measure(s, options);
  if (!costs.ok()) return fail(costs.status());
  if (!options.json) {
    fmt::print("{} threads, numerics {}\n", s.team().size(), s.engine().fingerprint());
    for (const StepCost& cost : costs.value()) print(cost);
    print_notes(costs.value());
    return store(costs.value(), options, s) ? 0 : kFailed;
  }
  nlohmann::json out = {{"model", options.model},
                        {"lanes", s.team().size()},
                        {"fingerprint", s.engine().fingerprint()}};
  for (const StepCost& cost : costs.value()) out[cost.what].push_back(to_json(cost));
  print_json(out);
  return store(costs.value(), options, s) ? 0 : kFailed;
}

}  // namespace millrace::cli
