#include "cli/bench_chain.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "lab/cuda_chain.h"
#include "lab/report.h"

namespace millrace::cli {
namespace {

struct Measured {
  lab::Roof before, after;
  lab::ChainRun chain;
};

Result<Measured> measure(lab::Target& target, const Machine& machine, Recorder& recorder) {
  constexpr int kSamples = 50;
  Measured m;
  MILLRACE_ASSIGN(m.before, target.measure_roof(Effort::full));
  recorder.add_ceilings("before", m.before);
  MILLRACE_ASSIGN(m.chain, lab::measure_chain(machine, kSamples));
  MILLRACE_ASSIGN(m.after, target.measure_roof(Effort::full));
  recorder.add_ceilings("after", m.after);
  return m;
}

void print(const Measured& m, const std::vector<lab::Row>& rows, const Recorder& recorder,
           bool json) {
  if (json) {
    nlohmann::json document = lab::to_json(rows[0]);
    document["samples_us"] = rows[0].samples_us;
    document["ceilings"] = lab::to_json(max_of(m.before, m.after));
    document["products"] = m.chain.n_products;
    document["witness"] = m.chain.witness;
    document["run"] = recorder.id();
    print_json(document);
    return;
  }
  fmt::print("{}{}", lab::ceilings_line("before", m.before), lab::ceilings_line("after", m.after));
  const lab::TableWidths widths = lab::widths_of(rows);
  fmt::print("{}{}", lab::table_header(widths), lab::table_line(rows[0], widths));
  fmt::print("Qwen3-0.6B's weights, one row: {} products in one graph, every output equal to {}\n",
             m.chain.n_products, m.chain.witness);
}

}  // namespace

int bench_chain(const Recording& recording, bool json) {
  const Machine machine = find_machine();
  auto target = lab::make_target("cuda", machine, 0);
  if (!target.ok()) return fail(target.status());
  Recorder recorder;
  if (const Status status = recorder.begin(recording, "chain", "cuda", machine); !status.ok())
    return fail(status);
  auto measured = measure(**target, machine, recorder);
  if (!measured.ok()) {
    recorder.end("failed");
    return fail(measured.status());
  }
  const auto rows =
      lab::rows_of(measured->chain.run, **target, max_of(measured->before, measured->after));
  recorder.add_rows(rows);
  recorder.end("done");
  print(*measured, rows, recorder, json);
  return recorder.report(!json) ? 0 : kFailed;
}

}  // namespace millrace::cli
