#include "cli/bench_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"
#include "cli/bench_steps.h"
#include "cli/commands.h"

namespace millrace::cli {
namespace {

constexpr int kDecodeSteps = 4;
constexpr int kStepsThread = 0;  // a lane's is its number plus one

// Events of the file in the order they are added; times count from the first.
class TraceFile {
 public:
  void name_thread(int thread, const std::string& name) {
    events_.push_back({{"ph", "M"},
                       {"pid", 1},
                       {"tid", thread},
                       {"name", "thread_name"},
                       {"args", {{"name", name}}}});
  }
  void add(int thread, const std::string& name, std::string_view category, int64_t begin_ns,
           int64_t end_ns, nlohmann::json args) {
    if (first_ns_ == 0) first_ns_ = begin_ns;
    events_.push_back({{"ph", "X"},
                       {"pid", 1},
                       {"tid", thread},
                       {"name", name},
                       {"cat", category},
                       {"ts", 1e-3 * static_cast<double>(begin_ns - first_ns_)},
                       {"dur", 1e-3 * static_cast<double>(end_ns - begin_ns)},
                       {"args", std::move(args)}});
  }
  size_t n_events() const { return events_.size(); }

  Status write(const std::string& path, const nlohmann::json& about) const {
    const std::string text =
        json_text(nlohmann::json{
            {"displayTimeUnit", "ns"}, {"otherData", about}, {"traceEvents", events_}}) +
        "\n";
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (file == nullptr)
      return error(Code::io_error, "cannot create {}: {}", path, std::strerror(errno));
    const bool wrote = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (std::fclose(file) != 0 || !wrote)
      return error(Code::io_error, "cannot write {}: {}", path, std::strerror(errno));
    return {};
  }

 private:
  std::vector<nlohmann::json> events_;
  int64_t first_ns_ = 0;
};

std::string name_of_call(const LoweredCall& call, const StepSpec& spec) {
  if (!call.weights.empty())
    if (const auto& name = spec.weights[static_cast<size_t>(call.weights[0])].name; !name.empty())
      return fmt::format("{} {}", call.op->name, name);
  if (!call.out.empty()) return fmt::format("{} v{}", call.op->name, call.out[0].value);
  return fmt::format("{} layer {}", call.op->name, call.layer);
}

nlohmann::json about_call(const LoweredCall& from, const Program::Call& call, int64_t n_rows) {
  const bool columns = call.split.by == SplitBy::columns;
  return {{"variant", call.variant->name},
          {"class", call.variant->numerics},
          {"split", !from.is_shared_out ? "its own"
                    : columns           ? "columns"
                                        : "rows"},
          {"rows", from.count == Count::rows ? n_rows : 1},
          {"shape", from.op->key(call.args.bytes)}};
}

class Tracer {
 public:
  explicit Tracer(ModelSession& session)
      : engine_(session.engine()),
        runner_(engine_),
        trace_(session.team().size(), 2 * engine_.network().program().n_calls(1)) {
    file_.name_thread(kStepsThread, "steps");
    for (int lane = 0; lane < trace_.n_lanes(); ++lane)
      file_.name_thread(lane + 1, fmt::format("lane {}", lane));
  }

  // The last step of the prompt, then some tokens.
  Status run(int64_t n_prompt) {
    const int64_t n_rows = std::min(n_prompt, engine_.options().max_rows);
    MILLRACE_TRY(runner_.begin(n_prompt));  // warms up
    MILLRACE_TRY(runner_.begin(n_prompt - n_rows));
    MILLRACE_TRY(step("prefill", n_rows));
    for (int i = 0; i < kDecodeSteps; ++i) MILLRACE_TRY(step("decode", 1));
    return {};
  }
  const TraceFile& file() const { return file_; }

 private:
  Status step(std::string_view what, int64_t n_rows) {
    StepProgram& steps = engine_.network().program();
    MILLRACE_ASSIGN(Program * program, steps.bound_for(n_rows, 1));
    trace_.clear();
    program->trace_to(&trace_);
    const int64_t context = runner_.context(), begin_ns = now_ns();
    const Status stepped = runner_.step(runner_.tokens(n_rows));
    const int64_t end_ns = now_ns();
    program->trace_to(nullptr);
    MILLRACE_TRY(stepped);
    file_.add(kStepsThread, fmt::format("{} {} {}", what, n_rows, n_rows == 1 ? "token" : "tokens"),
              "step", begin_ns, end_ns, {{"rows", n_rows}, {"context", context}});
    for (int lane = 0; lane < trace_.n_lanes(); ++lane) add_lane(lane, *program, n_rows);
    return {};
  }

  void add_lane(int lane, Program& program, int64_t n_rows) {
    const Network& network = engine_.network();
    for (const TraceSpan& span : trace_.lane(lane)) {
      const LoweredCall& from = network.program().lowered().calls[span.call];
      const std::string name = name_of_call(from, network.spec());
      if (span.what == TraceSpan::What::wait)
        file_.add(lane + 1, "barrier", "wait", span.begin_ns, span.end_ns, {{"after", name}});
      else
        file_.add(lane + 1, name, from.op->name, span.begin_ns, span.end_ns,
                  about_call(from, program.calls()[span.call], n_rows));
    }
  }

  Engine& engine_;
  StepRunner runner_;
  Trace trace_;
  TraceFile file_;
};

// Where no prompt length is asked for.
constexpr int64_t kPrompt = 64;

Status write_trace(const BenchModelOptions& options) {
  BenchModelOptions wanted = options;
  if (wanted.prompts.empty()) wanted.prompts = {kPrompt};
  MILLRACE_ASSIGN(auto session, load_for_steps(wanted, kDecodeSteps));
  Tracer tracer(*session);
  MILLRACE_TRY(tracer.run(wanted.prompts[0]));
  MILLRACE_TRY(tracer.file().write(
      options.trace,
      {{"model", session->name()}, {"fingerprint", session->engine().fingerprint()}}));
  fmt::print(stderr, "millrace: wrote {} events to {}; open it at ui.perfetto.dev\n",
             tracer.file().n_events(), options.trace);
  return {};
}

}  // namespace

int bench_trace(const BenchModelOptions& options) {
  const Status status = write_trace(options);
  return status.ok() ? 0 : fail(status);
}

}  // namespace millrace::cli
