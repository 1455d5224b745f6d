#include "lab/page/documents.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/sqlite.h"
#include "base/utf8.h"
#include "lab/json_fields.h"
#include "lab/notebook/graph.h"
#include "lab/notebook/json.h"
#include "lab/page/results.h"

namespace millrace::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostItems = 1000;
constexpr int64_t kMostSamples = 100000;  // of a run, in one answer: 2 MB
constexpr int kMayRun = 100;              // of the newest runs: which of them still run

struct Page {
  int64_t before = 0;
  int limit = 50;
};

Result<Page> page_of(const Params& params) {
  Page out;
  MILLRACE_ASSIGN(out.before, params.integer("before", 0, 0, INT64_MAX));
  MILLRACE_ASSIGN(const int64_t limit, params.integer("limit", 50, 1, kMostItems));
  out.limit = static_cast<int>(limit);
  return out;
}

// A list and where the next page begins: null at its end.
Json list_of(Json items, int limit, int64_t last) {
  const bool has_more = std::ssize(items) >= limit;
  return {{"items", std::move(items)}, {"next", has_more ? Json(last) : Json()}};
}

Json parsed(const std::string& text) {
  Json out = parse_shallow(text);
  return out.is_object() ? out : Json();
}

Result<int64_t> count(const Ask& ask, const char* table) {
  Store& store = ask.notebook.store();
  const std::string sql = fmt::format("SELECT count(*) FROM {}", table);
  return integer_of(store.connection(), store.path(), sql.c_str());
}

Result<Json> running_runs(const Ask& ask) {
  MILLRACE_ASSIGN(const auto runs, ask.notebook.store().runs(kMayRun));
  Json out = Json::array();
  for (const RunSummary& run : runs)
    if (run.state == "running") out.push_back(to_json(run));
  return out;
}

Result<Json> overview(const Ask& ask) {
  Json counts = Json::object();
  for (const char* table : {"runs", "experiments", "verdicts", "learnings", "posts"}) {
    MILLRACE_ASSIGN(const int64_t n, count(ask, table));
    counts[table] = n;
  }
  MILLRACE_ASSIGN(const auto hypotheses, ask.notebook.count_hypotheses());
  Json by_status = Json::object();
  for (const char* status :
       {"open", "testing", "supported", "refuted", "undecided", "contradicted"}) {
    const auto found = hypotheses.find(status);
    by_status[status] = found == hypotheses.end() ? 0 : found->second;
  }
  MILLRACE_ASSIGN(Json running, running_runs(ask));
  MILLRACE_ASSIGN(const auto newest, ask.notebook.newest_events(1));
  return Json{{"database", ask.notebook.store().path()},
              {"counts", counts},
              {"hypotheses", by_status},
              {"running", std::move(running)},
              {"newest_event", newest.empty() ? 0 : newest.back().seq}};
}

Result<Json> runs(const Ask& ask) {
  MILLRACE_ASSIGN(const Page page, page_of(ask.params));
  MILLRACE_ASSIGN(const auto found, ask.notebook.store().runs({.name = ask.params.text("name"),
                                                               .before = page.before,
                                                               .limit = page.limit}));
  Json items = Json::array();
  for (const RunSummary& run : found) items.push_back(to_json(run));
  return list_of(std::move(items), page.limit, found.empty() ? 0 : found.back().id);
}

Json json_of(const std::vector<StoredCeilings>& all) {
  Json out = Json::array();
  for (const StoredCeilings& c : all)
    out.push_back({{"at", c.at}, {"when", c.when}, {"measured", parsed(c.json)}});
  return out;
}

Result<Json> run(const Ask& ask) {
  Store& store = ask.notebook.store();
  MILLRACE_ASSIGN(const RunRecord record, store.record(ask.id));
  MILLRACE_ASSIGN(const std::string problem, store.problem_of(ask.id));
  MILLRACE_ASSIGN(Json results, read_results(store, {.run = ask.id, .limit = kMostItems * 10}));
  Json out = to_json(record.head);
  out["problem"] = problem;
  out["host"] = parsed(record.machine_json);
  out["build"] = parsed(record.build_json);
  out["ceilings"] = json_of(record.ceilings);
  out["results"] = std::move(results);
  out["hypothesis"] = Json();
  if (record.head.experiment) {
    MILLRACE_ASSIGN(const Experiment experiment, ask.notebook.experiment(*record.head.experiment));
    out["hypothesis"] = fmt::format("hyp:{}", experiment.hypothesis);
    out["role"] = experiment.role;
  }
  return out;
}

Result<Json> samples(const Ask& ask) {
  MILLRACE_TRY(ask.notebook.store().run(ask.id).status());
  MILLRACE_ASSIGN(const int64_t after, ask.params.integer("after", 0, 0, INT64_MAX));
  MILLRACE_ASSIGN(Json items, read_samples(ask.notebook.store(), ask.id, after, kMostSamples));
  return Json{{"items", std::move(items)}};
}

Result<Json> results(const Ask& ask) {
  MILLRACE_ASSIGN(const Page page, page_of(ask.params));
  ResultFilter filter{.name = ask.params.text("name"),
                      .metric = ask.params.text("metric"),
                      .before = page.before,
                      .limit = page.limit};
  MILLRACE_ASSIGN(filter.subject, ask.params.integer("subject", 0, 0, INT64_MAX));
  MILLRACE_ASSIGN(filter.problem, ask.params.pattern("problem"));
  MILLRACE_ASSIGN(filter.variant, ask.params.pattern("variant"));
  MILLRACE_ASSIGN(filter.mode, ask.params.pattern("mode"));
  MILLRACE_ASSIGN(Json items, read_results(ask.notebook.store(), filter));
  const int64_t last = items.empty() ? 0 : items.back()["id"].get<int64_t>();
  return list_of(std::move(items), page.limit, last);
}

Result<Json> names(const Ask& ask) {
  MILLRACE_ASSIGN(Json items, read_names(ask.notebook.store()));
  return Json{{"items", std::move(items)}};
}

Result<Json> subjects(const Ask& ask) {
  MILLRACE_ASSIGN(const int64_t limit, ask.params.integer("limit", 500, 1, kMostItems));
  MILLRACE_ASSIGN(Json items, read_subjects(ask.notebook.store(), ask.params.text("name"),
                                            static_cast<int>(limit)));
  return Json{{"items", std::move(items)}};
}

Result<Json> hypotheses(const Ask& ask) {
  MILLRACE_ASSIGN(const Page page, page_of(ask.params));
  MILLRACE_ASSIGN(const auto lines,
                  ask.notebook.hypotheses(page.before, page.limit, ask.params.text("status")));
  Json items = Json::array();
  for (const HypothesisLine& line : lines) {
    MILLRACE_ASSIGN(const Hypothesis whole, ask.notebook.hypothesis(line.id));
    Json item = to_json(line);
    item["says"] = effect_text(whole.prediction);
    item["of"] = subject_text(whole.prediction);
    items.push_back(std::move(item));
  }
  return list_of(std::move(items), page.limit, lines.empty() ? 0 : lines.back().id);
}

Result<Json> json_of_learning(const Ask& ask, const Learning& learning) {
  MILLRACE_ASSIGN(const LearningState state, ask.notebook.state_of(learning, ask.machine));
  return to_json(learning, state);
}

Result<Json> hypothesis(const Ask& ask) {
  Notebook& notebook = ask.notebook;
  MILLRACE_ASSIGN(const Hypothesis whole, notebook.hypothesis(ask.id));
  Json out = to_json(whole);
  MILLRACE_ASSIGN(const auto line, notebook.hypotheses(ask.id + 1, 1));
  out["status"] = line.empty() ? "open" : line.front().status;
  out["experiments"] = Json::array();
  MILLRACE_ASSIGN(const auto experiments, notebook.experiments_of(ask.id));
  for (const Experiment& experiment : experiments) {
    Json item = to_json(experiment);
    item["runs"] = Json::array();
    MILLRACE_ASSIGN(const auto made, notebook.store().runs({.experiment = experiment.id}));
    for (const RunSummary& one : made) item["runs"].push_back(to_json(one));
    out["experiments"].push_back(std::move(item));
  }
  out["verdicts"] = Json::array();
  MILLRACE_ASSIGN(const auto verdicts, notebook.verdicts_of(ask.id));
  for (const Verdict& verdict : verdicts) out["verdicts"].push_back(to_json(verdict));
  out["learnings"] = Json::array();
  MILLRACE_ASSIGN(const auto learnings, notebook.learnings_of(ask.id));
  for (const Learning& learning : learnings) {
    MILLRACE_ASSIGN(Json item, json_of_learning(ask, learning));
    out["learnings"].push_back(std::move(item));
  }
  return out;
}

// What a verdict said about these runs; empty where none did.
Result<std::string> outcome_for(Notebook& notebook, int64_t hypothesis,
                                const std::vector<RunSummary>& made) {
  MILLRACE_ASSIGN(const auto verdicts, notebook.verdicts_of(hypothesis));
  for (auto v = verdicts.rbegin(); v != verdicts.rend(); ++v)
    for (const RunSummary& run : made)
      if (v->run == run.id) return v->outcome;
  return std::string();
}

Result<Json> experiments(const Ask& ask) {
  MILLRACE_ASSIGN(const Page page, page_of(ask.params));
  MILLRACE_ASSIGN(const auto found, ask.notebook.experiments(page.before, page.limit));
  Json items = Json::array();
  for (const Experiment& experiment : found) {
    MILLRACE_ASSIGN(const Hypothesis h, ask.notebook.hypothesis(experiment.hypothesis));
    MILLRACE_ASSIGN(const auto made,
                    ask.notebook.store().runs({.experiment = experiment.id, .limit = 20}));
    MILLRACE_ASSIGN(const std::string outcome,
                    outcome_for(ask.notebook, experiment.hypothesis, made));
    Json item = to_json(experiment);
    item["text"] = h.text;
    item["says"] = effect_text(h.prediction);
    item["of"] = subject_text(h.prediction);
    item["outcome"] = outcome;
    item["runs"] = Json::array();
    for (const RunSummary& one : made)
      item["runs"].push_back({{"run", one.id}, {"state", one.state}, {"started", one.started}});
    items.push_back(std::move(item));
  }
  return list_of(std::move(items), page.limit, found.empty() ? 0 : found.back().id);
}

Result<Json> learnings(const Ask& ask) {
  MILLRACE_ASSIGN(const Page page, page_of(ask.params));
  // Each is checked against its evidence, which costs about a millisecond.
  const int limit = std::min(page.limit, 50);
  MILLRACE_ASSIGN(const auto found, ask.notebook.learnings(page.before, limit));
  Json items = Json::array();
  for (const Learning& learning : found) {
    MILLRACE_ASSIGN(Json item, json_of_learning(ask, learning));
    items.push_back(std::move(item));
  }
  return list_of(std::move(items), limit, found.empty() ? 0 : found.back().id);
}

Result<Json> graph(const Ask& ask) {
  NodeRef around;
  if (const std::string text = ask.params.text("around"); !text.empty()) {
    MILLRACE_ASSIGN(around, parse_ref(text));
    MILLRACE_TRY(ask.notebook.uid_of(around).status());
  }
  MILLRACE_ASSIGN(const int64_t limit, ask.params.integer("limit", 100, 1, 200));
  MILLRACE_ASSIGN(const Graph found,
                  read_graph(ask.notebook, around, static_cast<int>(limit), ask.machine));
  return to_json(found);
}

Result<Json> events(const Ask& ask) {
  MILLRACE_ASSIGN(const Page page, page_of(ask.params));
  MILLRACE_ASSIGN(const auto found, ask.notebook.events_before(page.before, page.limit));
  Json items = Json::array();
  for (const Event& event : found) items.push_back(to_json(event));
  return list_of(std::move(items), page.limit, found.empty() ? 0 : found.back().seq);
}

Result<Json> posts(const Ask& ask) {
  MILLRACE_ASSIGN(const Page page, page_of(ask.params));
  MILLRACE_ASSIGN(const auto found, ask.notebook.posts(page.before, page.limit));
  Json items = Json::array();
  for (const Post& post : found) {
    Json item = to_json(post);
    item.erase("body");
    items.push_back(std::move(item));
  }
  return list_of(std::move(items), page.limit, found.empty() ? 0 : found.back().id);
}

Result<Json> post(const Ask& ask) {
  MILLRACE_ASSIGN(const Post whole, ask.notebook.post(ask.id));
  Json out = to_json(whole);
  out["claims"] = Json::array();
  MILLRACE_ASSIGN(const auto claims, ask.notebook.claims_of(ask.id));
  for (const Claim& claim : claims) {
    MILLRACE_ASSIGN(const ClaimState state, ask.notebook.state_of(claim, ask.machine));
    out["claims"].push_back(to_json(claim, state));
  }
  return out;
}

constexpr Endpoint kEndpoints[] = {
    {"overview", "Counts, runs in progress and the number of the newest event", "", overview},
    {"runs", "Stored runs, newest first", "name before limit", runs},
    {"run/", "One run: machine, build, ceilings and every measurement", "", run},
    {"samples/", "The samples of a run's measurements", "after", samples},
    {"results", "Measurements of all runs, newest run first",
     "name metric problem variant mode subject before limit", results},
    {"names", "What was measured: ops, models and others, with their numbers of runs", "", names},
    {"subjects", "The cases, variants and modes that were measured", "name limit", subjects},
    {"experiments", "Experiments, newest first, with prediction and outcome", "before limit",
     experiments},
    {"hypotheses", "Hypotheses, newest first", "status before limit", hypotheses},
    {"hypothesis/", "One hypothesis with its experiments, verdicts and learnings", "", hypothesis},
    {"learnings", "Learnings, newest first, with strength and what makes them stale",
     "before limit", learnings},
    {"graph", "Records and the typed edges between them", "around limit", graph},
    {"events", "The running log, newest first", "before limit", events},
    {"posts", "Posts, newest first, without their text", "before limit", posts},
    {"post/", "One post with its text and claims", "", post},
};

}  // namespace

std::span<const Endpoint> endpoints() {
  return kEndpoints;
}

Result<Json> read_document(Notebook& notebook, const Machine& machine, std::string_view path,
                           const Params& params) {
  for (const Endpoint& endpoint : kEndpoints) {
    const bool takes_id = endpoint.name.ends_with('/');
    if (takes_id ? !path.starts_with(endpoint.name) : path != endpoint.name) continue;
    Ask ask{notebook, machine, params};
    if (takes_id) {
      MILLRACE_ASSIGN(ask.id, parse_id(path.substr(endpoint.name.size())));
    }
    return endpoint.read(ask);
  }
  return error(Code::not_found, "there is no /lab/api/{}", printable(path, 100));
}

}  // namespace millrace::lab
