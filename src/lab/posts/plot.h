// Plots as SVG, drawn from samples: every sample is a dot, the median a line, its interval a bar.
// The same samples give the same bytes, so that a plot is checked as a number is. Colours follow
// the reader's light or dark scheme; there is no script and nothing from outside.
#pragma once

#include <string>

#include "lab/posts/claims.h"

namespace millrace::lab {

// An error where nothing is there to be drawn.
Result<std::string> draw_plot(const PlotLine& plot, const Claims& claims);

// Measurements side by side, each on a line of its own.
struct PlotBar {
  std::string label;
  const Metric* metric = nullptr;
};
std::string draw_bars(const std::vector<PlotBar>& bars);
// A metric over the rows of a call, a line for each variant; sorted by variant and rows.
std::string draw_curve(const std::vector<const Metric*>& points);

}  // namespace millrace::lab
