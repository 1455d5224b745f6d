// What the lines of a claims block come to, computed from stored samples: the text of each number,
// and what is wrong with it. Nothing is remembered from when the post was written; a run that was
// deleted, changed or replaced is named.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lab/notebook/notebook.h"
#include "lab/posts/claims_block.h"

namespace millrace::lab {

struct ClaimValue {
  double value = 0;
  std::string unit;                // empty: a plain number
  std::string text;                // as the post gives it: "62.1 us", "1.83x", "-12 %"
  std::string problem;             // why there is none; empty: it is sound
  std::string ambiguous;           // of a comparison that the samples do not decide
  std::set<std::string> runs;      // the block's names of those behind it
  std::set<std::string> subjects;  // the ops, models, ... that were measured for it
};

struct RunState {
  RunLine line;
  int64_t id = 0;  // 0: it is not here
  RunSummary head = {};
  std::string problem = {};  // "run 3f2a... (sweep): the evidence was deleted"
  std::string stale = {};
  bool imported = false;
  double predicted_percent = 0;  // what the hypothesis of the run said, without its sign; 0: none
  std::vector<Metric> metrics = {};
};

class Claims {
 public:
  // All of a block. Problems of single claims are theirs; an error is one of the store.
  static Result<Claims> of(ClaimsBlock block, Notebook& notebook, const Machine& machine);

  const ClaimsBlock& block() const { return block_; }
  const std::vector<RunState>& runs() const { return runs_; }
  const RunState* run(std::string_view name) const;
  const ClaimValue* find(std::string_view name) const;
  const Metric* metric_of(std::string_view claim) const;  // of a measurement that is sound
  // Those of a curve, by variant and rows; empty where the run is no evidence.
  std::vector<const Metric*> metrics_of(const MetricPattern& pattern) const;
  // Shares of one whole that come to more than all of it.
  std::vector<std::string> wrong_shares() const;
  // Whether a text is what a run calls something: a case, a variant, its command, the machine.
  bool is_known(std::string_view text) const;
  const std::set<std::string>& known_texts() const { return known_; }

 private:
  Status load(Notebook& notebook, const Machine& machine, const RunLine& line);
  void learn_names(const RunState& run);
  ClaimValue value_of(const ClaimLine& line);
  ClaimValue metric_value(const ClaimLine& line);
  ClaimValue fact_value(const ClaimLine& line) const;
  ClaimValue predicted_value(const ClaimLine& line) const;
  ClaimValue arithmetic_value(const ClaimLine& line) const;
  std::string why_not_together(const std::vector<std::string>& names) const;
  std::string why_not_comparable(const ClaimLine& line) const;
  void compare(const ClaimLine& line, ClaimValue& out) const;

  ClaimsBlock block_;
  std::vector<RunState> runs_;
  std::map<std::string, ClaimValue, std::less<>> values_;
  std::map<std::string, const Metric*, std::less<>> metrics_;
  std::set<std::string> known_;
};

// "62.1 us", "1234", "35 %".
std::string number_text(double value, std::string_view unit);
// The rows of a kernel's call, from its key ("rows=8 n=576"), else from digits before an x in the
// case's name; 0 where neither tells.
int64_t rows_of(const Metric& metric);
// Whether a subject can be named in a claims block at all: it came from outside.
bool can_be_named(const Subject& subject);

}  // namespace millrace::lab
