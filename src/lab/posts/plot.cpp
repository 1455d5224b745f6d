#include "lab/posts/plot.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lab/posts/text.h"
#include "lab/report.h"

namespace millrace::lab {
namespace {

constexpr double kWidth = 720;

// Two schemes; a reader's choice comes through the picture's own style.
constexpr std::string_view kStyle =
    "<style>text{font:13px system-ui,sans-serif;fill:#1c2733}.s{fill:#52616f}"
    ".a{stroke:#b7c1ca;stroke-width:1;fill:none}"
    ".c0{stroke:#0b6bcb;fill:#0b6bcb}.c1{stroke:#c2410c;fill:#c2410c}"
    ".c2{stroke:#15803d;fill:#15803d}.c3{stroke:#7e22ce;fill:#7e22ce}"
    ".d{fill-opacity:.25;stroke:none}.l{fill:none;stroke-width:2}.b{stroke-width:5;"
    "stroke-opacity:.35}.m{stroke-width:2}"
    "@media(prefers-color-scheme:dark){text{fill:#e3e9ef}.s{fill:#9fb0bf}.a{stroke:#45525e}"
    ".c0{stroke:#5db0ff;fill:#5db0ff}.c1{stroke:#ff9a62;fill:#ff9a62}"
    ".c2{stroke:#5fd38d;fill:#5fd38d}.c3{stroke:#cf9bff;fill:#cf9bff}}</style>";

std::string head(double height, std::string_view title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\"><title>{2}</title>{3}\n",
      kWidth, height, html_escape(title), kStyle);
}

std::string text_at(double x, double y, std::string_view text, std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, more,
                     html_escape(text));
}
std::string line_at(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, style);
}
std::string dot_at(double x, double y, double r, std::string_view style) {
  return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" class=\"{}\"/>\n", x, y, r,
                     style);
}

// A step of 1, 2 or 5 times a power of ten that cuts [0, most] into 4 to 10.
double step_for(double most) {
  const double power = std::pow(10, std::floor(std::log10(most / 4)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (most / (factor * power) <= 8) return factor * power;
  return 10 * power;
}

// What one slow sample does not stretch: the larger of the intervals' ends and the medians.
double most_of(const std::vector<const Metric*>& metrics) {
  double most = 0;
  for (const Metric* m : metrics) {
    most = std::max(most, m->value.mid);
    if (std::isfinite(m->value.hi)) most = std::max(most, m->value.hi);
  }
  return 1.12 * most;
}

Status check(const std::vector<const Metric*>& metrics) {
  if (metrics.empty()) return error(Code::unavailable, "no measurement is there to be drawn");
  for (const Metric* m : metrics)
    if (m->unit != metrics[0]->unit || m->name != metrics[0]->name)
      return error(Code::unavailable, "it has two scales: {} in {} and {} in {}", metrics[0]->name,
                   metrics[0]->unit, m->name, m->unit);
  if (!(most_of(metrics) > 0)) return error(Code::unavailable, "all of it is nothing");
  return {};
}

std::string axis_label(const Metric& m) {
  return fmt::format("{} ({}), {} is better", m.name, m.unit, m.better);
}

// What tells them apart, of case, variant and mode.
std::vector<PlotBar> labelled(const std::vector<const Metric*>& metrics) {
  const auto differs = [&](std::string Subject::*part) {
    return std::any_of(metrics.begin(), metrics.end(), [&](const Metric* m) {
      return m->subject.*part != metrics[0]->subject.*part;
    });
  };
  std::vector<std::string Subject::*> parts;
  for (const auto part : {&Subject::name, &Subject::problem, &Subject::variant, &Subject::mode})
    if (differs(part)) parts.push_back(part);
  const bool lanes = std::any_of(metrics.begin(), metrics.end(), [&](const Metric* m) {
    return m->subject.n_lanes != metrics[0]->subject.n_lanes;
  });
  if (parts.empty() && !lanes) parts = {&Subject::variant};
  std::vector<PlotBar> out;
  for (const Metric* m : metrics) {
    std::vector<std::string> words;
    for (const auto part : parts) words.push_back(m->subject.*part);
    if (lanes) words.push_back(fmt::format("{} lanes", m->subject.n_lanes));
    out.push_back({fmt::format("{}", fmt::join(words, " ")), m});
  }
  return out;
}

}  // namespace

std::string draw_bars(const std::vector<PlotBar>& bars) {
  constexpr double kRow = 34, kTop = 30, kRight = 90;
  size_t longest = 0;
  for (const PlotBar& bar : bars) longest = std::max(longest, bar.label.size());
  const double left = std::min(330.0, 24 + 7.2 * static_cast<double>(longest));
  const double height = kTop + kRow * static_cast<double>(bars.size()) + 44;
  std::vector<const Metric*> metrics;
  for (const PlotBar& bar : bars) metrics.push_back(bar.metric);
  const double most = most_of(metrics), scale = (kWidth - left - kRight) / most;
  const Metric& first = *metrics[0];
  std::string out = head(height, fmt::format("{} {}", first.subject.name, axis_label(first)));
  const double bottom = height - 40, step = step_for(most);
  for (int i = 0; i * step <= most; ++i) {
    const double x = left + i * step * scale;
    out += line_at(x, kTop - 8, x, bottom, "a");
    out += text_at(x, bottom + 16, short_number(i * step), " text-anchor=\"middle\" class=\"s\"");
  }
  out += text_at(left, height - 6, axis_label(first), " class=\"s\"");
  for (size_t i = 0; i < bars.size(); ++i) {
    const Metric& m = *bars[i].metric;
    const double y = kTop + kRow * (static_cast<double>(i) + 0.4);
    const std::string colour = fmt::format("c{}", i % 4);
    out += text_at(left - 10, y + 5, bars[i].label, " text-anchor=\"end\"");
    out += line_at(left, y, left + m.value.mid * scale, y, colour + " m");
    if (std::isfinite(m.value.lo) && std::isfinite(m.value.hi))
      out += line_at(left + m.value.lo * scale, y, left + m.value.hi * scale, y, colour + " b");
    for (const double sample : m.samples)
      if (sample >= 0 && sample <= most) out += dot_at(left + sample * scale, y, 3, colour + " d");
    out += line_at(left + m.value.mid * scale, y - 8, left + m.value.mid * scale, y + 8,
                   colour + " m");
    out += text_at(kWidth - kRight + 8, y + 5, number_text(m.value.mid, m.unit));
  }
  return out + "</svg>\n";
}

std::string draw_curve(const std::vector<const Metric*>& points) {
  constexpr double kHeight = 330, kLeft = 60, kTop = 34, kBottom = kHeight - 46, kRight = 16;
  const double most = most_of(points), y_scale = (kBottom - kTop) / most;
  int64_t last = 1, first = INT64_MAX;
  std::map<std::string, std::vector<const Metric*>> lines;
  for (const Metric* m : points) {
    last = std::max(last, rows_of(*m));
    first = std::min(first, rows_of(*m));
    lines[m->subject.variant].push_back(m);
  }
  const double span = static_cast<double>(std::max<int64_t>(1, last - first));
  const auto x_of = [&](int64_t rows) {
    return kLeft + 8 + static_cast<double>(rows - first) * (kWidth - kLeft - kRight - 16) / span;
  };
  const auto y_of = [&](double value) { return kBottom - std::min(value, most) * y_scale; };
  std::string out =
      head(kHeight, fmt::format("{} {} over rows", points[0]->subject.name, points[0]->name));
  for (int i = 0; i * step_for(most) <= most; ++i) {
    const double y = y_of(i * step_for(most));
    out += line_at(kLeft, y, kWidth - kRight, y, "a");
    out += text_at(kLeft - 6, y + 4, short_number(i * step_for(most)),
                   " text-anchor=\"end\" class=\"s\"");
  }
  const auto every = static_cast<int64_t>(std::max(1.0, step_for(span)));
  for (int64_t rows = first; rows <= last; ++rows)
    if (rows % every == 0 || rows == first)
      out += text_at(x_of(rows), kBottom + 16, std::to_string(rows),
                     " text-anchor=\"middle\" class=\"s\"");
  out += text_at(kLeft, 16, axis_label(*points[0]), " class=\"s\"");
  out += text_at(kWidth - kRight, kHeight - 8, "rows", " text-anchor=\"end\" class=\"s\"");
  size_t i = 0;
  for (const auto& [variant, metrics] : lines) {
    const std::string colour = fmt::format("c{}", i % 4);
    std::string path;
    for (const Metric* m : metrics) {
      const double x = x_of(rows_of(*m)), y = y_of(m->value.mid);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
      if (std::isfinite(m->value.lo) && std::isfinite(m->value.hi))
        out += line_at(x, y_of(m->value.lo), x, y_of(m->value.hi), colour + " b");
      out += dot_at(x, y, 2.5, colour);
    }
    out += fmt::format("<path d=\"{}\" class=\"{} l\"/>\n", path, colour);
    out += text_at(kLeft + 12 + 190 * static_cast<double>(i), kTop + 2, variant,
                   fmt::format(" class=\"{}\" stroke=\"none\" style=\"stroke:none\"", colour));
    ++i;
  }
  return out + "</svg>\n";
}

Result<std::string> draw_plot(const PlotLine& plot, const Claims& claims) {
  std::vector<const Metric*> metrics;
  if (plot.is_curve) {
    metrics = claims.metrics_of(plot.curve);
    std::erase_if(metrics, [](const Metric* m) { return rows_of(*m) == 0; });
  }
  for (const std::string& name : plot.bars)
    if (const Metric* m = claims.metric_of(name)) metrics.push_back(m);
  if (!plot.is_curve && metrics.size() != plot.bars.size())
    return error(Code::unavailable, "the evidence of a bar is missing");
  MILLRACE_TRY(check(metrics));
  return plot.is_curve ? draw_curve(metrics) : draw_bars(labelled(metrics));
}

}  // namespace millrace::lab
