// Verdicts: whether one variant, or one stored run, is faster than another. Each comes with the
// interval of the log-ratio, corrected for how many comparisons were made at once, and with the
// least effect that counts; never a bare ratio.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/profile.h"
#include "lab/bench.h"
#include "lab/row.h"

namespace millrace::lab {

struct VerdictRow {
  std::string op, problem, mode;
  std::string a, b;  // what is compared: b against a
  double us_a = 0, us_b = 0;
  double min_effect = 0;
  Comparison comparison;
};

// Variant b against variant a in every case and mode that has both.
std::vector<VerdictRow> compare_variants(const std::vector<CaseRun>& runs, std::string_view a,
                                         std::string_view b);
// The same op, case, variant, mode and lanes in two stored runs.
std::vector<VerdictRow> compare_runs(const std::vector<Row>& a, const std::vector<Row>& b);

// Per key, the fastest variant (cold) that is FAST against the default choice inside its numerics
// class; keys whose default stands have no entry.
Profile profile_of(const std::vector<CaseRun>& runs, const Target& target);

std::string verdict_header();
std::string verdict_line(const VerdictRow& row);

}  // namespace millrace::lab
