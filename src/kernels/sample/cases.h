// The named problems of sample: each rule alone and all together, rows that mix them, edits, tails
// of vectors and blocks, logits that are not finite, nonsense parameters, and real vocabularies.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/case.h"

namespace millrace::sample {

struct Problem {
  long long n_rows, n;
  std::string_view rule = "plain";   // plain greedy top_k top_p min_p all mixed nonsense
  std::string_view data = "normal";  // normal sparse hostile bad flat
  std::string_view edits = "none";   // none said biases mask all
  bool logprob = true;
  long long max_top = 0;
  bool shared_logits = false;  // all rows draw from the same two
  bool timed = false;
};

Case make_case(const Problem& problem);
std::vector<Case> cases();

}  // namespace millrace::sample
