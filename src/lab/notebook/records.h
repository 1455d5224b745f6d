// What the notebook holds besides runs, as plain structs. A record has an id in its database and a
// uid everywhere; `origin` is empty for what was made here and else says where it came from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lab/metric.h"
#include "lab/notebook/conditions.h"

namespace millrace::lab {

// "run:12", "hyp:3", "exp:4", "verdict:2", "learn:1", "post:1", "claim:5".
struct NodeRef {
  std::string kind;
  int64_t id = 0;

  bool operator==(const NodeRef&) const = default;
};
std::string to_text(const NodeRef& ref);
Result<NodeRef> parse_ref(std::string_view text);
// A reference of one kind, which may be left out: "3" for "hyp:3".
Result<int64_t> parse_ref(std::string_view text, std::string_view kind);

struct RecordHead {
  int64_t id = 0;
  std::string uid, created, origin;
};

// What a hypothesis says will be measured. Everything left empty matches all.
struct Prediction {
  std::string metric = "time";
  std::string direction = "down";  // down, up, same
  double size = 0;                 // relative, signed: -0.1 is 10 % less; 0: any that counts
  // Of which subjects. `problem` is a shell pattern.
  std::string kind, name, problem, mode;
  // B against A inside one run; empty: the candidate's run against the baseline's.
  std::string variant_a, variant_b;
  std::optional<int64_t> baseline_run;

  bool compares_variants() const { return !variant_b.empty(); }
};
// "-10%", "+5%", "down", "up", "same": into direction and size.
Status parse_effect(std::string_view text, Prediction& out);
std::string effect_text(const Prediction& prediction);  // "time falls by at least 10 %"
std::string subject_text(const Prediction& prediction);

struct Hypothesis : RecordHead {
  std::string text, rationale;
  Prediction prediction;
};

struct Experiment : RecordHead {
  int64_t hypothesis = 0;
  std::string role = "candidate";  // or "baseline"
  std::string command;
};

struct Verdict : RecordHead {
  int64_t hypothesis = 0, run = 0;
  std::optional<int64_t> baseline_run;
  std::string outcome;  // supported, refuted, undecided
  std::string method, json;
};

struct Learning : RecordHead {
  int64_t hypothesis = 0, verdict = 0;
  std::string text, scope;
  Conditions conditions;
};

// How much stands behind a learning: counted, not typed.
struct Strength {
  int n_supporting = 0, n_refuting = 0, n_undecided = 0, n_machines = 0;
  int n_imported = 0;  // of the runs: measured elsewhere
  int n_unfinished =
      0;             // interrupted or failed: no evidence, and somebody may have seen rows of it
  std::string name;  // undecided, one run, repeated, several machines, contradicted

  int n_runs() const { return n_supporting + n_refuting + n_undecided; }
};
// "contradicted (1 run supports it, 2 refute it)"
std::string to_text(const Strength& strength);

struct Edge : RecordHead {
  NodeRef from, to;
  std::string type;
  std::optional<int64_t> run;
};

struct Post : RecordHead {
  std::string slug, title, body, state = "draft";  // published, retracted
};

// A number that a text gives: never typed, always the answer of a query over one run.
struct Claim : RecordHead {
  std::optional<int64_t> post;
  int64_t run = 0;
  std::string text;
  Subject subject;
  std::string metric = "time", statistic = "median";  // low, high: of its interval; best
  double value = 0;
  std::string unit;
  Conditions conditions;
};

struct Event {
  int64_t seq = 0;
  std::string uid, at, actor, type;
  NodeRef ref;
  std::string text;
};

}  // namespace millrace::lab
