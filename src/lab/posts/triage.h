// The first phase of a post: what of the notebook is worth telling, and why. Rules decide by
// default, from what is counted and computed: strength, effect, age of the evidence. A refuted
// prediction is as welcome as one that held; one of which runs say both is not told as either. A
// model may be asked as well, among those that the rules let pass; it cannot let in what is stale,
// undecided or without evidence.
#pragma once

#include <string>
#include <vector>

#include "lab/notebook/notebook.h"

namespace millrace::lab {

struct Candidate {
  NodeRef ref;            // learn, hyp or run
  std::string text = {};  // what was learned or asked; of a run: its command
  std::string outcome = {}, strength = {};
  std::string besides = {};  // what else was measured for it: "; other runs of it were undecided"
  double effect = 0;         // of the row that changed most: |ln(b / a)|
  bool imported = false;
  double score = 0;
  bool taken = false;
  std::string why = {};  // it was taken or left
};

// Of what is named, or of all learnings (the newest 200) where nothing is; best first.
Result<std::vector<Candidate>> triage(Notebook& notebook, const Machine& machine,
                                      const std::vector<NodeRef>& refs);

// The posts that use a record.
Result<std::vector<int64_t>> posts_about(Notebook& notebook, const NodeRef& ref);

}  // namespace millrace::lab
