// millrace lab: predict, measure, judge, learn. The commands that read are in lab_show.cpp, those
// that exchange files in lab_exchange.cpp.
#include "cli/lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/recorder.h"
#include "lab/notebook/json.h"

namespace millrace::cli {

Result<lab::Notebook> open_notebook(const std::string& db, lab::Store::Missing missing) {
  MILLRACE_ASSIGN(lab::Store store, open_store(db, missing));
  return lab::Notebook(std::move(store));
}

void add_lab_options(Command& command, LabOptions& options) {
  command.option("--db", options.db, "Database of the lab (default: the user's own)")
      .type_name("FILE");
  command.flag("--json", options.json, "Print JSON");
}

namespace {

struct HypothesisOptions {
  LabOptions lab;
  std::string text, rationale, predict, metric = "time", op, model, problem, mode, baseline,
                                        refines;
  std::vector<std::string> compare;
};

Result<lab::Hypothesis> hypothesis_of(const HypothesisOptions& options) {
  lab::Hypothesis out;
  out.text = options.text;
  out.rationale = options.rationale;
  lab::Prediction& p = out.prediction;
  MILLRACE_TRY(lab::parse_effect(options.predict, p));
  p.metric = options.metric;
  p.kind = options.model.empty() ? "" : "model";
  p.name = options.model.empty() ? options.op : options.model;
  p.problem = options.problem;
  p.mode = options.mode;
  if (!options.compare.empty()) {
    p.variant_a = options.compare[0];
    p.variant_b = options.compare[1];
  }
  if (!options.baseline.empty()) {
    MILLRACE_ASSIGN(p.baseline_run, parse_run(options.baseline));
  }
  return out;
}

Result<int64_t> add_hypothesis(lab::Notebook& notebook, const HypothesisOptions& options) {
  MILLRACE_ASSIGN(const lab::Hypothesis hypothesis, hypothesis_of(options));
  if (options.refines.empty()) return notebook.add(hypothesis);
  MILLRACE_ASSIGN(const int64_t refined, lab::parse_ref(options.refines, "hyp"));
  MILLRACE_TRY(notebook.hypothesis(refined).status());
  MILLRACE_ASSIGN(const int64_t id, notebook.add(hypothesis));
  lab::Edge edge;
  edge.from = {"hyp", id};
  edge.to = {"hyp", refined};
  edge.type = "refines";
  MILLRACE_TRY(notebook.add(edge).status());
  return id;
}

// One word for a shell, whatever is in it: the line is there to be pasted.
std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=+,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  std::string out = "'";
  for (const char c : printable(text)) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

int hypothesis(const HypothesisOptions& options) {
  auto notebook = open_notebook(options.lab.db, lab::Store::Missing::make);
  if (!notebook.ok()) return fail(notebook.status());
  const auto id = add_hypothesis(*notebook, options);
  if (!id.ok()) return fail(id.status());
  const auto stored = notebook->hypothesis(id.value());
  if (!stored.ok()) return fail(stored.status());
  if (options.lab.json) {
    print_json(lab::to_json(stored.value()));
    return 0;
  }
  const lab::Prediction& p = stored.value().prediction;
  std::string line = p.name.empty() ? "bench" : "bench " + shell_word(p.name);
  if (!p.problem.empty() && p.kind != "model") line += " --case " + shell_word(p.problem);
  if (p.compares_variants())
    line += fmt::format(" --compare {} {}", shell_word(p.variant_a), shell_word(p.variant_b));
  fmt::print("hyp:{}: {}\n{}\n", id.value(), printable(effect_text(p)), printable(subject_text(p)));
  if (!p.compares_variants() && !p.baseline_run)
    fmt::print("Its baseline: millrace lab run --baseline hyp:{} -- {}\n", id.value(), line);
  fmt::print("To test it: millrace lab run hyp:{} -- {}\n", id.value(), line);
  return 0;
}

struct RunOptions {
  LabOptions lab;
  std::string hypothesis;
  std::vector<std::string> command;
  bool baseline = false;
};

// The bench command as if it had been typed, with the run bound to its hypothesis.
int run_bench_command(const RunOptions& options, int64_t hypothesis,
                      const std::string& command_line) {
  App app("Millrace: what lab run measures", "millrace", "");
  add_bench(app, {.db = options.lab.db,
                  .command = command_line,
                  .hypothesis = hypothesis,
                  .role = options.baseline ? "baseline" : "candidate"});
  std::vector<std::string> words = {"millrace"};
  words.insert(words.end(), options.command.begin(), options.command.end());
  if (options.lab.json && std::find(words.begin(), words.end(), "--json") == words.end())
    words.emplace_back("--json");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return app.run(static_cast<int>(words.size()), argv.data());
}

int run(const RunOptions& options, const std::string& command_line) {
  if (options.command.front() != "bench")
    return fail(error(Code::invalid_argument,
                      "lab run measures with bench: millrace lab run HYP -- bench ..."));
  int64_t id = 0, n_before = 0;
  {
    auto notebook = open_notebook(options.lab.db, lab::Store::Missing::refuse);
    if (!notebook.ok()) return fail(notebook.status());
    const auto parsed = lab::parse_ref(options.hypothesis, "hyp");
    if (!parsed.ok()) return fail(parsed.status());
    id = parsed.value();
    if (const auto found = notebook->hypothesis(id); !found.ok()) return fail(found.status());
    const auto runs = notebook->runs_of(id, "");
    if (!runs.ok()) return fail(runs.status());
    n_before = std::ssize(runs.value());
  }
  const int exit_code = run_bench_command(options, id, command_line);
  if (exit_code != 0) return exit_code;
  auto notebook = open_notebook(options.lab.db, lab::Store::Missing::refuse);
  if (!notebook.ok()) return fail(notebook.status());
  const auto runs = notebook->runs_of(id, "");
  if (!runs.ok()) return fail(runs.status());
  if (std::ssize(runs.value()) == n_before)
    return fail(
        error(Code::unsupported, "this form of bench stores no run, so hyp:{} has none", id));
  return 0;
}

struct VerdictOptions {
  LabOptions lab;
  std::string hypothesis, run;
};

Result<lab::Notebook::Judged> judge(lab::Notebook& notebook, const VerdictOptions& options) {
  MILLRACE_ASSIGN(const int64_t id, lab::parse_ref(options.hypothesis, "hyp"));
  std::optional<int64_t> run;
  if (!options.run.empty()) {
    MILLRACE_ASSIGN(run, parse_run(options.run));
  }
  return notebook.give_verdict(id, run);
}

int verdict(const VerdictOptions& options) {
  auto notebook = open_notebook(options.lab.db, lab::Store::Missing::refuse);
  if (!notebook.ok()) return fail(notebook.status());
  const auto judged = judge(*notebook, options);
  if (!judged.ok()) return fail(judged.status());
  const lab::Verdict& v = judged.value().verdict;
  const auto strength = notebook->strength_of(v.hypothesis);
  if (!strength.ok()) return fail(strength.status());
  if (options.lab.json) {
    nlohmann::ordered_json document = lab::to_json(v);
    document["strength"] = lab::to_json(strength.value());
    print_json(document);
    return 0;
  }
  const auto hypothesis = notebook->hypothesis(v.hypothesis);
  if (!hypothesis.ok()) return fail(hypothesis.status());
  // Where other runs say the opposite, this one's verdict is not the hypothesis's.
  const bool is_contradicted = strength.value().name == "contradicted";
  fmt::print("{}\nverdict:{}: hyp:{} {} {} by run:{}{} ({})\n",
             lab::judgement_table(judged.value().judgement), v.id, v.hypothesis,
             is_contradicted ? "would be" : "is", v.outcome, v.run,
             v.baseline_run ? fmt::format(" against run:{}", *v.baseline_run) : "",
             printable(effect_text(hypothesis.value().prediction)));
  if (strength.value().n_runs() + strength.value().n_unfinished > 1)
    fmt::print("all runs of hyp:{}: {}\n", v.hypothesis, to_text(strength.value()));
  return 0;
}

struct LearnOptions {
  LabOptions lab;
  std::string hypothesis, text, scope;
};

int learn(const LearnOptions& options) {
  auto notebook = open_notebook(options.lab.db, lab::Store::Missing::refuse);
  if (!notebook.ok()) return fail(notebook.status());
  const auto hypothesis = lab::parse_ref(options.hypothesis, "hyp");
  if (!hypothesis.ok()) return fail(hypothesis.status());
  const auto id = notebook->learn(hypothesis.value(), options.text, options.scope);
  if (!id.ok()) return fail(id.status());
  const auto learning = notebook->learning(id.value());
  if (!learning.ok()) return fail(learning.status());
  const auto state = notebook->state_of(learning.value(), find_machine());
  if (!state.ok()) return fail(state.status());
  if (options.lab.json) {
    print_json(lab::to_json(learning.value(), state.value()));
    return 0;
  }
  fmt::print("learn:{}: {}\nscope: {}\nstrength: {}\n", id.value(),
             printable(learning.value().text), printable(learning.value().scope),
             to_text(state.value().strength));
  return 0;
}

}  // namespace

void add_lab_hypothesis(Command& lab) {
  auto options = std::make_shared<HypothesisOptions>();
  Command command =
      lab.add("hypothesis", "Write down what a measurement will show, before it is made");
  command.option("text", options->text, "What you think, in a sentence").required();
  command
      .option("--predict", options->predict,
              "The change: -10% or +5% (at least that much), or down, up or same")
      .type_name("CHANGE")
      .required();
  command.option("--metric", options->metric, "What changes: time, tokens_per_s")
      .type_name("METRIC")
      .show_default();
  Option op = command.option("--op", options->op, "Of this op").type_name("OP");
  command.option("--model", options->model, "Of this model, as bench names it")
      .type_name("MODEL")
      .excludes(op);
  command.option("--case", options->problem, "Only of these cases, a name or shell pattern")
      .type_name("CASE");
  command.option("--mode", options->mode, "Only of this mode: cold, warm").type_name("MODE");
  Option compare =
      command.option("--compare", options->compare, "Variant B against variant A, in one run");
  compare.type_name("A B").n_values(2);
  command
      .option("--baseline", options->baseline,
              "Against this stored run (default: one made with 'lab run --baseline')")
      .type_name("RUN")
      .excludes(compare);
  command.option("--why", options->rationale, "Why you think so").type_name("TEXT");
  command.option("--refines", options->refines, "An earlier hypothesis that this one makes sharper")
      .type_name("HYP");
  add_lab_options(command, options->lab);
  command.footer(
      "Example: millrace lab hypothesis 'AVX-512 norms one row faster' --op rmsnorm --compare avx2 "
      "avx512 --predict -10%");
  command.runs([options] { return hypothesis(*options); });
}

void add_lab_run(Command& lab, const std::string& command_line) {
  auto options = std::make_shared<RunOptions>();
  Command command = lab.add("run", "Measure with bench, as an experiment on a hypothesis");
  command.option("hypothesis", options->hypothesis, "The hypothesis, as hyp:3 or 3")
      .type_name("HYP")
      .required();
  command.option("command", options->command, "The bench command, after '--'")
      .type_name("-- bench ARGS")
      .required();
  command.flag("--baseline", options->baseline,
               "Measure what the hypothesis is compared with, not the change");
  add_lab_options(command, options->lab);
  command.footer("Example: millrace lab run hyp:3 -- bench rmsnorm --compare avx2 avx512");
  command.runs([options, command_line] { return run(*options, command_line); });
}

void add_lab_verdict(Command& lab) {
  auto options = std::make_shared<VerdictOptions>();
  Command command = lab.add("verdict", "Compute from a run whether a prediction held");
  command.option("hypothesis", options->hypothesis, "The hypothesis, as hyp:3 or 3")
      .type_name("HYP")
      .required();
  command.option("--run", options->run, "Judge this run of it (default: the newest)")
      .type_name("RUN");
  add_lab_options(command, options->lab);
  command.footer(
      "Supported: in every row the whole interval lies beyond the prediction and the noise. "
      "Refuted: in some row it falls short of it. Undecided: everything else. All runs of a "
      "hypothesis are judged; where one supports it and another refutes it, it is contradicted.");
  command.runs([options] { return verdict(*options); });
}

void add_lab_learn(Command& lab) {
  auto options = std::make_shared<LearnOptions>();
  Command command = lab.add("learn", "Keep what a verdict taught, with its scope");
  command.option("hypothesis", options->hypothesis, "The hypothesis, as hyp:3 or 3")
      .type_name("HYP")
      .required();
  command.option("text", options->text, "What was learned, in a sentence").required();
  command
      .option("--scope", options->scope,
              "Where it holds (default: the device, what the prediction is about, the cases)")
      .type_name("TEXT");
  add_lab_options(command, options->lab);
  command.footer(
      "A learning goes stale when the hardware, the driver, the toolkit or the source of the op "
      "changes; 'lab show' says why.");
  command.runs([options] { return learn(*options); });
}

void add_lab(App& app, const std::string& command_line) {
  Command lab = app.add("lab", "The lab's notebook: predict, measure, judge, learn");
  add_lab_hypothesis(lab);
  add_lab_run(lab, command_line);
  add_lab_verdict(lab);
  add_lab_learn(lab);
  add_lab_show(lab);
  add_lab_log(lab);
  add_lab_graph(lab);
  add_lab_export(lab);
  add_lab_import(lab);
  add_lab_cliffs(lab, command_line);
  add_lab_serve(lab);
  add_lab_export_site(lab);
}

}  // namespace millrace::cli
