// The block at the end of a post that says where its numbers come from, one line each:
//
//   <!-- claims
//   run sweep = 3f2a9c1d0b7e4f5a sha256 0123456789abcdef
//   eight = time of sweep | matmul | q8_0_8x576x576 | avx512_vnni | warm
//   nine = time of sweep | matmul | q8_0_9x576x576 | avx512_vnni | warm | best
//   rows = rows of nine
//   asked = prediction of sweep
//   step = ratio nine / eight
//   more = rise eight -> nine
//   both = sum eight + nine
//   part = share eight / both
//   other = ratio norm / eight | across ops
//   plot times = bars eight nine
//   plot curve = curve of sweep | time | matmul | q8_0_*x576x576 | * | warm
//   -->
//
// It is a comment, so no renderer shows it, and a person can read it. A number in the text is
// followed by the name of its claim: "62.1 us<!--=nine-->". This file reads and writes the block;
// what its lines come to is in claims.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace millrace::lab {

struct RunLine {
  std::string name, uid, digest;  // the first digits of them, 16 at least
};

// Which metrics of a run: each part exactly, or a shell pattern. Lanes 0: any.
struct MetricPattern {
  std::string run, metric, name, problem, variant, mode;
  int n_lanes = 0;

  bool operator==(const MetricPattern&) const = default;
};

struct ClaimLine {
  enum class Kind { metric, fact, ratio, change, rise, drop, sum, difference, share };
  std::string name = {};
  Kind kind = Kind::metric;
  MetricPattern pattern = {};        // of a metric
  std::string statistic = "median";  // low, high, best
  std::string fact = {};             // "rows", "samples", ...
  std::vector<std::string> of = {};  // the claims that it is computed from
  bool across = false;               // one op against another is meant: "| across ops"
};

struct PlotLine {
  std::string name;
  bool is_curve = false;
  std::vector<std::string> bars = {};  // claims
  MetricPattern curve = {};
};

struct ClaimsBlock {
  std::vector<RunLine> runs;
  std::vector<ClaimLine> claims;
  std::vector<PlotLine> plots;

  const ClaimLine* find(std::string_view name) const;
};

inline constexpr std::string_view kClaimsBegin = "<!-- claims";

// What stands between "<!-- claims" and "-->". `line` is that of the former, for errors.
Result<ClaimsBlock> parse_claims(std::string_view text, int line);
std::string to_text(const ClaimsBlock& block);  // with the comment around it

}  // namespace millrace::lab
