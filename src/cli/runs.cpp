// millrace runs: the stored bench runs, or the rows of one.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/recorder.h"
#include "lab/report.h"

namespace millrace::cli {
namespace {

struct Options {
  std::string run, db;
  int limit = 20;
  bool json = false;
};

nlohmann::json to_json(const lab::RunSummary& run) {
  return {{"run", run.id},        {"started", run.started}, {"ended", run.ended},
          {"state", run.state},   {"device", run.device},   {"machine", run.machine},
          {"commit", run.commit}, {"command", run.command}, {"rows", run.n_results}};
}

int list_runs(lab::Store& store, const Options& options) {
  auto runs = store.runs(options.limit);
  if (!runs.ok()) return fail(runs.status());
  auto rows = nlohmann::json::array();
  if (!options.json)
    fmt::print("{:>5} {:<20} {:<11} {:<6} {:>5} {:<21} {}\n", "run", "started", "state", "device",
               "rows", "commit", "machine");
  for (const auto& run : *runs) {
    rows.push_back(to_json(run));
    if (!options.json)
      fmt::print("{:>5} {:<20} {:<11} {:<6} {:>5} {:<21} {}\n", run.id, run.started, run.state,
                 run.device, run.n_results, run.commit, run.machine);
  }
  if (options.json) print_json(rows);
  return 0;
}

int show_run(lab::Store& store, const Options& options) {
  auto id = parse_run(options.run);
  if (!id.ok()) return fail(id.status());
  auto run = store.run(*id);
  if (!run.ok()) return fail(run.status());
  auto rows = store.rows(*id);
  if (!rows.ok()) return fail(rows.status());
  if (options.json) {
    auto document = to_json(*run);
    document["results"] = nlohmann::json::array();
    for (const auto& row : *rows) {
      document["results"].push_back(lab::to_json(row));
      document["results"].back()["samples_us"] = row.samples_us;
    }
    print_json(document);
    return 0;
  }
  fmt::print("run {}: {}, {}, commit {}\n{}\n{}\n\n", run->id, run->started, run->state,
             run->commit, printable(run->command), run->machine);
  const lab::TableWidths widths = lab::widths_of(*rows);
  fmt::print("{}", lab::table_header(widths));
  for (const auto& row : *rows) fmt::print("{}", lab::table_line(row, widths));
  return 0;
}

int runs(const Options& options) {
  auto store = open_store(options.db, lab::Store::Missing::refuse);
  if (!store.ok()) return fail(store.status());
  return options.run.empty() ? list_runs(*store, options) : show_run(*store, options);
}

}  // namespace

void add_runs(App& app) {
  auto options = std::make_shared<Options>();
  Command command = app.add("runs", "List stored benchmark runs, or show one");
  command.option("run", options->run, "The run to show").type_name("RUN");
  command.option("--db", options->db, "Database of runs (default: the user's own)")
      .type_name("FILE");
  command.option("--limit", options->limit, "Show the newest N").range(1, 1000000).show_default();
  command.flag("--json", options->json, "Print JSON");
  command.runs([options] { return runs(*options); });
}

}  // namespace millrace::cli
