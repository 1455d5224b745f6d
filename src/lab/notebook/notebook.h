// The notebook: what is thought about runs, in the same file as they are. A prediction is written
// before its run, a verdict is computed from samples, a learning says what it was learned under,
// and every change appends an event. Nothing here takes a measured number from its caller.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lab/notebook/judge.h"
#include "lab/notebook/records.h"
#include "lab/store.h"

namespace millrace::lab {

// A hypothesis as a list shows it.
struct HypothesisLine {
  int64_t id = 0;
  std::string created, text, origin;
  std::string status;  // open, testing, supported, refuted, undecided, contradicted: of all runs
  int64_t n_runs = 0;
};

struct LearningState {
  std::string stale;     // why; empty: it is not
  std::string evidence;  // what is wrong with the run behind it; empty: nothing
  bool imported = false;
  Strength strength;
};

// What stands behind a verdict: its run, and its baseline's where it has one.
struct Evidence {
  std::string problem;  // empty: none
  bool imported = false;
};

struct ClaimState {
  double value_now = 0;
  std::string status;  // ok, changed, no evidence
  std::string problem, stale;
  bool imported = false;
};

class Notebook {
 public:
  static Result<Notebook> open(const std::filesystem::path& path,
                               Store::Missing missing = Store::Missing::make);
  explicit Notebook(Store store, std::string actor = "cli")
      : store_(std::move(store)), actor_(std::move(actor)) {}

  Store& store() { return store_; }

  // Each stores one record and its event, and gives its id. Head and computed members are ignored.
  Result<int64_t> add(const Hypothesis& hypothesis);
  Result<int64_t> add(const Experiment& experiment);
  Result<int64_t> add(const Edge& edge);
  Result<int64_t> add(const Post& post);
  Status set_post_state(int64_t post, std::string_view state);
  // Of a post, title and body may change; its short name does not.
  Status set_post_text(int64_t post, const std::string& title, const std::string& body);
  // A post with its state, new (its id is 0) or changed, in one transaction; its id.
  Result<int64_t> keep(const Post& post);
  // Value, unit and conditions are computed from the run; an error where it is no evidence.
  Result<int64_t> add(const Claim& claim);

  // Judges the newest run of the hypothesis (or this one) and stores the verdict, after that of
  // every other run made for it that has none, against each of its baselines; the same verdict on
  // the same runs is stored once.
  struct Judged {
    Verdict verdict;
    Judgement judgement;
  };
  Result<Judged> give_verdict(int64_t hypothesis, std::optional<int64_t> run = {});
  // From the newest verdict; scope is empty for its device, prediction and cases.
  Result<int64_t> learn(int64_t hypothesis, const std::string& text, std::string scope = "");

  Result<Hypothesis> hypothesis(int64_t id);
  Result<Experiment> experiment(int64_t id);
  Result<Verdict> verdict(int64_t id);
  Result<Learning> learning(int64_t id);
  Result<Post> post(int64_t id);
  Result<Post> post_named(const std::string& slug);
  Result<Claim> claim(int64_t id);

  // Newest first; all of them, or those of one status.
  Result<std::vector<HypothesisLine>> hypotheses(int64_t before, int limit,
                                                 std::string_view status = "");
  // How many hypotheses have each status.
  Result<std::map<std::string, int64_t>> count_hypotheses();
  Result<std::vector<Experiment>> experiments(int64_t before, int limit);  // newest first
  Result<std::vector<Learning>> learnings(int64_t before, int limit);
  Result<std::vector<Post>> posts(int64_t before, int limit);
  Result<std::vector<Experiment>> experiments_of(int64_t hypothesis);
  Result<std::vector<Verdict>> verdicts_of(int64_t hypothesis);  // oldest first
  Result<std::vector<Learning>> learnings_of(int64_t hypothesis);
  Result<std::vector<Claim>> claims_of(int64_t post);
  Result<std::vector<RunSummary>> runs_of(int64_t hypothesis, std::string_view role);
  // Over all runs made for it, whoever was asked about.
  Result<Strength> strength_of(int64_t hypothesis);
  Result<std::vector<Edge>> edges_at(const NodeRef& node);
  Result<std::vector<Edge>> edges(int64_t after, int limit);         // by id
  Result<std::vector<Event>> events(int64_t after, int limit);       // by number
  Result<std::vector<Event>> newest_events(int limit);               // oldest of them first
  Result<std::vector<Event>> events_before(int64_t seq, int limit);  // newest first

  Result<Evidence> evidence_of(const Verdict& verdict);
  Result<LearningState> state_of(const Learning& learning, const Machine& machine);
  Result<ClaimState> state_of(const Claim& claim, const Machine& machine);

  // Between databases: a record's name everywhere, and its id here (not_found where it is not).
  Result<std::string> uid_of(const NodeRef& ref);
  Result<NodeRef> ref_of(std::string_view kind, const std::string& uid);

 private:
  friend class Importer;
  Status add_event(std::string_view type, const NodeRef& ref, std::string_view text);
  Result<int64_t> insert(const Hypothesis& hypothesis);
  Result<int64_t> insert(const Experiment& experiment);
  Result<int64_t> insert(const Verdict& verdict);
  Result<int64_t> insert(const Learning& learning);
  Result<int64_t> insert(const Edge& edge);
  Result<int64_t> insert(const Post& post);
  Result<int64_t> insert(const Claim& claim);
  Result<int64_t> run_to_judge(const Hypothesis& hypothesis, std::optional<int64_t> run);
  Result<std::vector<std::optional<int64_t>>> baselines_of(const Hypothesis& hypothesis);
  Result<Judgement> judge_runs(const Hypothesis& hypothesis, int64_t run,
                               std::optional<int64_t> baseline);
  Result<Verdict> keep_verdict(int64_t hypothesis, int64_t run, std::optional<int64_t> baseline,
                               const Judgement& judgement);
  Status judge_the_rest(const Hypothesis& hypothesis, int64_t run,
                        const std::vector<std::optional<int64_t>>& baselines);
  Status add_verdict_edge(const Verdict& verdict);
  Result<double> value_of(const Claim& claim);

  Store store_;
  std::string actor_;
};

// What a text may be: UTF-8, not blank, not longer than 64 KiB.
Status check_text(std::string_view what, std::string_view text);
Status check(const Post& post);

}  // namespace millrace::lab
