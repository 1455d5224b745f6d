// millrace lab show, log, graph: what the notebook holds.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/lab.h"
#include "lab/notebook/graph.h"
#include "lab/notebook/json.h"
#include "lab/report.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;
constexpr size_t kLineBytes = 100;  // of a text in a list

struct ShowOptions {
  LabOptions lab;
  std::string what = "runs", op, before;
  int limit = 20;
};

std::string marks(const std::string& origin) {
  return origin.empty() ? "" : " (imported)";
}

// "before" as an id of what is listed; 0 when it was not given.
Result<int64_t> before_of(const ShowOptions& options, std::string_view kind) {
  if (options.before.empty()) return int64_t{0};
  return lab::parse_ref(options.before, kind);
}

Status list_runs(lab::Notebook& notebook, const ShowOptions& options) {
  MILLRACE_ASSIGN(const int64_t before, before_of(options, "run"));
  MILLRACE_ASSIGN(
      const auto runs,
      notebook.store().runs({.name = options.op, .before = before, .limit = options.limit}));
  if (options.lab.json) {
    Json rows = Json::array();
    for (const auto& run : runs) rows.push_back(lab::to_json(run));
    print_json(rows);
    return {};
  }
  fmt::print("{:<10} {:<20} {:<11} {:<6} {:<6} {:>5} {:<21} {}\n", "run", "started", "state",
             "kind", "device", "rows", "commit", "machine");
  for (const auto& run : runs)
    fmt::print("{:<10} {:<20} {:<11} {:<6} {:<6} {:>5} {:<21} {}{}\n",
               fmt::format("run:{}", run.id), printable(run.started), printable(run.state),
               printable(run.kind), printable(run.device), run.n_results, printable(run.commit),
               printable(run.machine, kLineBytes), marks(run.origin));
  return {};
}

Status list_hypotheses(lab::Notebook& notebook, const ShowOptions& options) {
  MILLRACE_ASSIGN(const int64_t before, before_of(options, "hyp"));
  MILLRACE_ASSIGN(const auto lines, notebook.hypotheses(before, options.limit));
  if (options.lab.json) {
    Json rows = Json::array();
    for (const auto& line : lines) rows.push_back(lab::to_json(line));
    print_json(rows);
    return {};
  }
  for (const auto& line : lines)
    fmt::print("{:<8} {:<12} {:>3} runs  {}{}\n", fmt::format("hyp:{}", line.id),
               printable(line.status), line.n_runs, printable(line.text, kLineBytes),
               marks(line.origin));
  return {};
}

void print_learning(const lab::Learning& l, const lab::LearningState& state) {
  fmt::print("learn:{}{}: {}\n  scope: {}\n  strength: {}\n", l.id, marks(l.origin),
             printable(l.text), printable(l.scope), to_text(state.strength));
  if (!state.evidence.empty()) fmt::print("  evidence: {}\n", printable(state.evidence));
  if (state.imported) fmt::print("  evidence: imported, not measured here\n");
  if (!state.stale.empty()) fmt::print("  stale: {}\n", printable(state.stale));
}

Status list_learnings(lab::Notebook& notebook, const ShowOptions& options) {
  MILLRACE_ASSIGN(const int64_t before, before_of(options, "learn"));
  MILLRACE_ASSIGN(const auto learnings, notebook.learnings(before, options.limit));
  const Machine machine = find_machine();
  Json rows = Json::array();
  for (const auto& l : learnings) {
    MILLRACE_ASSIGN(const auto state, notebook.state_of(l, machine));
    if (options.lab.json)
      rows.push_back(lab::to_json(l, state));
    else
      print_learning(l, state);
  }
  if (options.lab.json) print_json(rows);
  return {};
}

Status list_posts(lab::Notebook& notebook, const ShowOptions& options) {
  MILLRACE_ASSIGN(const int64_t before, before_of(options, "post"));
  MILLRACE_ASSIGN(const auto posts, notebook.posts(before, options.limit));
  Json rows = Json::array();
  for (const auto& post : posts) {
    rows.push_back(lab::to_json(post));
    if (!options.lab.json)
      fmt::print("post:{} {:<10} {} ({}){}\n", post.id, printable(post.state),
                 printable(post.title, kLineBytes), printable(post.slug), marks(post.origin));
  }
  if (options.lab.json) print_json(rows);
  return {};
}

// run:3f2a9c1d too: a run's uid is the same in every database, its number is not.
Result<lab::NodeRef> find_ref(lab::Notebook& notebook, const std::string& text) {
  auto ref = lab::parse_ref(text);
  const bool is_long = text.size() >= std::strlen("run:") + 8;
  if (!text.starts_with("run:") || (ref.ok() && !is_long)) return ref;
  auto id = notebook.store().run_of_uid(std::string_view(text).substr(4));
  const bool is_number = text.find_first_not_of("0123456789", 4) == text.npos;
  if (!id.ok()) return is_number ? ref : Result<lab::NodeRef>(id.status());
  return lab::NodeRef{"run", *id};
}

// Rows of kernels have a table of their own.
void print_metrics(const std::vector<lab::Metric>& metrics) {
  std::vector<lab::Row> rows;
  for (const lab::Metric& m : metrics)
    if (m.kernel) rows.push_back(lab::row_of(m));
  for (lab::Row& row : rows)
    for (std::string* text :
         {&row.op, &row.problem, &row.variant, &row.mode, &row.bound, &row.witness})
      *text = printable(*text);
  const lab::TableWidths widths = lab::widths_of(rows);
  if (!rows.empty()) fmt::print("{}", lab::table_header(widths));
  for (const lab::Row& row : rows) fmt::print("{}", lab::table_line(row, widths));
  for (const lab::Metric& m : metrics)
    if (!m.kernel)
      fmt::print("{}, {}{}{}, {}: {} {} {}, {} samples\n", printable(m.subject.name),
                 printable(m.subject.problem), m.subject.variant.empty() ? "" : ", ",
                 printable(m.subject.variant), printable(m.subject.mode), printable(m.name),
                 lab::short_number(m.value.mid), printable(m.unit), m.samples.size());
}

Status show_run(lab::Notebook& notebook, int64_t id, bool json) {
  MILLRACE_ASSIGN(const auto run, notebook.store().run(id));
  MILLRACE_ASSIGN(const auto metrics, notebook.store().metrics(id));
  MILLRACE_ASSIGN(const std::string problem, notebook.store().problem_of(id));
  if (json) {
    Json document = lab::to_json(run);
    document["problem"] = problem;
    document["results"] = Json::array();
    for (const auto& metric : metrics) {
      document["results"].push_back(lab::to_json(metric));
      if (metric.kernel) document["results"].back()["row"] = lab::to_json(lab::row_of(metric));
      document["results"].back()["samples"] = metric.samples;
    }
    print_json(document);
    return {};
  }
  fmt::print("run:{}: {}, {}, commit {}\n{}\n{}\n", run.id, printable(run.started),
             printable(run.state), printable(run.commit), printable(run.command),
             printable(run.machine));
  if (!run.origin.empty()) fmt::print("{}, not measured here\n", printable(run.origin));
  if (!problem.empty()) fmt::print("{}\n", problem);
  if (run.experiment) {
    const auto experiment = notebook.experiment(*run.experiment);
    if (experiment.ok())
      fmt::print("the {} of hyp:{}\n", printable(experiment.value().role),
                 experiment.value().hypothesis);
  }
  fmt::print("\n");
  print_metrics(metrics);
  return {};
}

Result<Json> verdicts_json(lab::Notebook& notebook, const std::vector<lab::Verdict>& verdicts) {
  Json out = Json::array();
  for (const lab::Verdict& v : verdicts) {
    MILLRACE_ASSIGN(const lab::Evidence evidence, notebook.evidence_of(v));
    out.push_back(lab::to_json(v));
    out.back()["evidence_problem"] = evidence.problem;
    out.back()["evidence_imported"] = evidence.imported;
  }
  return out;
}

Status print_verdict(lab::Notebook& notebook, const lab::Verdict& v) {
  MILLRACE_ASSIGN(const lab::Evidence evidence, notebook.evidence_of(v));
  fmt::print("verdict:{}{}: {} by run:{}{}, {}{}{}\n", v.id, marks(v.origin), printable(v.outcome),
             v.run, v.baseline_run ? fmt::format(" against run:{}", *v.baseline_run) : "",
             printable(v.created), evidence.imported ? "; on imported runs" : "",
             evidence.problem.empty() ? "" : "; " + printable(evidence.problem));
  return {};
}

Status show_hypothesis(lab::Notebook& notebook, int64_t id, bool json) {
  MILLRACE_ASSIGN(const auto h, notebook.hypothesis(id));
  MILLRACE_ASSIGN(const auto runs, notebook.runs_of(id, ""));
  MILLRACE_ASSIGN(const auto verdicts, notebook.verdicts_of(id));
  MILLRACE_ASSIGN(const auto learnings, notebook.learnings_of(id));
  const Machine machine = find_machine();
  Json document = lab::to_json(h);
  if (!json) {
    fmt::print("hyp:{}{}: {}\npredicted {}: {} ({})\n", h.id, marks(h.origin), printable(h.text),
               printable(h.created), printable(effect_text(h.prediction)),
               printable(subject_text(h.prediction)));
    if (!h.rationale.empty()) fmt::print("because: {}\n", printable(h.rationale));
  }
  document["runs"] = Json::array();
  for (const auto& run : runs) {
    document["runs"].push_back(lab::to_json(run));
    if (!json)
      fmt::print("run:{} {} {}{}\n", run.id, printable(run.started), printable(run.state),
                 marks(run.origin));
  }
  MILLRACE_ASSIGN(document["verdicts"], verdicts_json(notebook, verdicts));
  document["learnings"] = Json::array();
  if (!json)
    for (const auto& v : verdicts) MILLRACE_TRY(print_verdict(notebook, v));
  for (const auto& l : learnings) {
    MILLRACE_ASSIGN(const auto state, notebook.state_of(l, machine));
    document["learnings"].push_back(lab::to_json(l, state));
    if (!json) print_learning(l, state);
  }
  if (json) print_json(document);
  return {};
}

Status show_verdict(lab::Notebook& notebook, int64_t id, bool json) {
  MILLRACE_ASSIGN(const auto v, notebook.verdict(id));
  if (json) {
    MILLRACE_ASSIGN(const Json all, verdicts_json(notebook, {v}));
    print_json(all[0]);
    return {};
  }
  MILLRACE_TRY(print_verdict(notebook, v));
  const Json document = lab::to_json(v);
  for (const Json& row : document["rows"]) fmt::print("  {}\n", printable(json_text(row)));
  return {};
}

Status show_learning(lab::Notebook& notebook, int64_t id, bool json) {
  MILLRACE_ASSIGN(const auto l, notebook.learning(id));
  MILLRACE_ASSIGN(const auto state, notebook.state_of(l, find_machine()));
  if (json)
    print_json(lab::to_json(l, state));
  else
    print_learning(l, state);
  return {};
}

void print_claim(const lab::Claim& c, const lab::ClaimState& state) {
  fmt::print("claim:{}{}: {}\n  {} {} ({} of {}, run:{}): {}{}\n", c.id, marks(c.origin),
             printable(c.text), lab::short_number(c.value), printable(c.unit),
             printable(c.statistic), printable(c.metric), c.run, state.status,
             state.imported ? ", imported" : "");
  if (!state.problem.empty()) fmt::print("  {}\n", printable(state.problem));
  if (!state.stale.empty()) fmt::print("  stale: {}\n", printable(state.stale));
}

Status show_claim(lab::Notebook& notebook, int64_t id, bool json) {
  MILLRACE_ASSIGN(const auto c, notebook.claim(id));
  MILLRACE_ASSIGN(const auto state, notebook.state_of(c, find_machine()));
  if (json)
    print_json(lab::to_json(c, state));
  else
    print_claim(c, state);
  return {};
}

// Its own lines, and no other.
std::string printable_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out += printable(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

Status show_post(lab::Notebook& notebook, int64_t id, bool json) {
  MILLRACE_ASSIGN(const auto post, notebook.post(id));
  MILLRACE_ASSIGN(const auto claims, notebook.claims_of(id));
  const Machine machine = find_machine();
  Json document = lab::to_json(post);
  document["claims"] = Json::array();
  if (!json)
    fmt::print("post:{}{}: {} ({}, {})\n\n{}\n", post.id, marks(post.origin), printable(post.title),
               printable(post.slug), printable(post.state), printable_lines(post.body));
  for (const auto& c : claims) {
    MILLRACE_ASSIGN(const auto state, notebook.state_of(c, machine));
    document["claims"].push_back(lab::to_json(c, state));
    if (!json) print_claim(c, state);
  }
  if (json) print_json(document);
  return {};
}

Status show_experiment(lab::Notebook& notebook, int64_t id, bool json) {
  MILLRACE_ASSIGN(const auto e, notebook.experiment(id));
  MILLRACE_ASSIGN(const auto runs, notebook.store().runs({.experiment = id}));
  Json document = lab::to_json(e);
  document["runs"] = Json::array();
  for (const auto& run : runs) document["runs"].push_back(lab::to_json(run));
  if (json) {
    print_json(document);
    return {};
  }
  fmt::print("exp:{}{}: {} of hyp:{}, {}\n{}\n", e.id, marks(e.origin), printable(e.role),
             e.hypothesis, printable(e.created), printable(e.command));
  for (const auto& run : runs) fmt::print("run:{} {}\n", run.id, printable(run.state));
  return {};
}

Status show(lab::Notebook& notebook, const ShowOptions& options) {
  if (options.what == "runs") return list_runs(notebook, options);
  if (options.what == "hypotheses") return list_hypotheses(notebook, options);
  if (options.what == "learnings") return list_learnings(notebook, options);
  if (options.what == "posts") return list_posts(notebook, options);
  MILLRACE_ASSIGN(const lab::NodeRef ref, find_ref(notebook, options.what));
  const bool json = options.lab.json;
  if (ref.kind == "run") return show_run(notebook, ref.id, json);
  if (ref.kind == "hyp") return show_hypothesis(notebook, ref.id, json);
  if (ref.kind == "exp") return show_experiment(notebook, ref.id, json);
  if (ref.kind == "verdict") return show_verdict(notebook, ref.id, json);
  if (ref.kind == "learn") return show_learning(notebook, ref.id, json);
  if (ref.kind == "post") return show_post(notebook, ref.id, json);
  return show_claim(notebook, ref.id, json);
}

struct LogOptions {
  LabOptions lab;
  int64_t after = -1;
  int limit = 20;
};

Status log(lab::Notebook& notebook, const LogOptions& options) {
  MILLRACE_ASSIGN(const auto events, options.after < 0
                                         ? notebook.newest_events(options.limit)
                                         : notebook.events(options.after, options.limit));
  Json rows = Json::array();
  for (const auto& event : events) {
    rows.push_back(lab::to_json(event));
    if (!options.lab.json)
      fmt::print("{:>5} {} {:<17} {:<10} {}\n", event.seq, printable(event.at),
                 printable(event.type), event.ref.id > 0 ? printable(lab::to_text(event.ref)) : "",
                 printable(event.text, kLineBytes));
  }
  if (options.lab.json) print_json(rows);
  return {};
}

struct GraphOptions {
  LabOptions lab;
  std::string around;
  bool dot = false;
  int limit = 200;
};

Status graph(lab::Notebook& notebook, const GraphOptions& options) {
  lab::NodeRef around;
  if (!options.around.empty()) {
    MILLRACE_ASSIGN(around, lab::parse_ref(options.around));
    MILLRACE_TRY(notebook.uid_of(around).status());
  }
  MILLRACE_ASSIGN(const auto found,
                  lab::read_graph(notebook, around, options.limit, find_machine()));
  if (options.lab.json) {
    print_json(lab::to_json(found));
  } else if (options.dot) {
    fmt::print("{}", lab::to_dot(found));
  } else {
    for (const auto& node : found.nodes)
      fmt::print("{:<10} [{}] {}\n", printable(lab::to_text(node.ref)), printable(node.status),
                 printable(node.text, kLineBytes));
    if (!found.edges.empty()) fmt::print("\n");
    for (const auto& edge : found.edges)
      fmt::print("{} -{}-> {}{}\n", printable(lab::to_text(edge.from)), printable(edge.type),
                 printable(lab::to_text(edge.to)),
                 edge.run ? fmt::format("  (run:{})", *edge.run) : "");
  }
  return {};
}

// A command that reads: on a notebook that must be there.
template <class Options>
int read_notebook(const Options& options, Status (*command)(lab::Notebook&, const Options&)) {
  auto notebook = open_notebook(options.lab.db, lab::Store::Missing::refuse);
  if (!notebook.ok()) return fail(notebook.status());
  const Status status = command(*notebook, options);
  return status.ok() ? 0 : fail(status);
}

}  // namespace

void add_lab_show(Command& lab) {
  auto options = std::make_shared<ShowOptions>();
  Command command =
      lab.add("show", "List runs, hypotheses, learnings or posts, or show one record");
  command
      .option("what", options->what,
              "runs, hypotheses, learnings, posts, or a record: run:12, hyp:3, exp:4, verdict:2, "
              "learn:1, claim:5, post:1")
      .type_name("WHAT")
      .show_default();
  command.option("--op", options->op, "Only runs that measured this op or model").type_name("NAME");
  command.option("--limit", options->limit, "Show the newest N").range(1, 1000000).show_default();
  command.option("--before", options->before, "Of those, the ones older than this record")
      .type_name("ID");
  add_lab_options(command, options->lab);
  command.runs([options] { return read_notebook(*options, show); });
}

void add_lab_log(Command& lab) {
  auto options = std::make_shared<LogOptions>();
  Command command = lab.add("log", "Print what happened: every change to the notebook, in order");
  command.option("--after", options->after, "Events after this number, oldest first").at_least(0);
  command.option("--limit", options->limit, "Print N events (default: the newest 20)")
      .range(1, 1000000);
  add_lab_options(command, options->lab);
  command.runs([options] { return read_notebook(*options, log); });
}

void add_lab_graph(Command& lab) {
  auto options = std::make_shared<GraphOptions>();
  Command command =
      lab.add("graph", "Print hypotheses, verdicts and learnings, and what links them");
  command.option("around", options->around, "Only what is near this record, like hyp:3")
      .type_name("ID");
  Option dot = command.flag("--dot", options->dot, "Print Graphviz's format");
  command.option("--limit", options->limit, "The newest N edges").range(1, 1000000).show_default();
  add_lab_options(command, options->lab);
  dot.excludes(command.find("--json"));
  command.footer("Example: millrace lab graph --dot | dot -Tsvg > lab.svg");
  command.runs([options] { return read_notebook(*options, graph); });
}

}  // namespace millrace::cli
