// Whether measurements bear out a prediction. The numbers come from stored samples and the
// statistics of lab/stats.h: paired rounds where one run has both sides, intervals of two medians
// else, 95 % for all rows together.
//
// A row supports the prediction when its whole interval lies beyond the predicted size by more than
// the least effect that counts, refutes it when it lies short of it by as much, and else leaves it
// undecided. A prediction without a size is refuted by SAME too. A prediction is about all rows
// that it matches: one that refutes it is enough, and it is supported only by all.
#pragma once

#include <string>
#include <vector>

#include "lab/notebook/records.h"

namespace millrace::lab {

inline constexpr std::string_view kJudgeMethod = "sign-test-1";

struct JudgedRow {
  Subject subject;
  std::string a, b, unit;  // what is compared: b against a
  double value_a = 0, value_b = 0, min_effect = 0;
  Interval log_ratio;
  bool paired = false;
  std::string outcome;
};

struct Judgement {
  std::string outcome;
  std::vector<JudgedRow> rows;
};

// The metrics of the run, and of its baseline where the prediction compares runs. An error when
// nothing measured is what the prediction is about.
Result<Judgement> judge(const Prediction& prediction, const std::vector<Metric>& run,
                        const std::vector<Metric>& baseline);

// One row's, from the interval of ln(b / a).
std::string outcome_of(const Prediction& prediction, const Interval& log_ratio, double min_effect);

// A verdict's JSON, and a table of its rows.
std::string to_json_text(const Judgement& judgement);
std::string judgement_table(const Judgement& judgement);
// The cases that a verdict's rows are of: "case 1x576", "cases 1x576, 8x576 and 12 more".
std::string cases_text(const Verdict& verdict);

}  // namespace millrace::lab
