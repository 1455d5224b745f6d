#include "lab/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace millrace::lab {
namespace {

std::string line_of(const TableWidths& w, const std::array<std::string, 14>& cell) {
  return fmt::format(
      "{:<{}} {:<{}} {:<{}} {:<{}} {:>2} {:>8} {:>18} {:>7} {:>7} {:>7} {:<5} {:>5} {:>5} {}\n",
      cell[0], w.op, cell[1], w.problem, cell[2], w.variant, cell[3], w.mode, cell[4], cell[5],
      cell[6], cell[7], cell[8], cell[9], cell[10], cell[11], cell[12], cell[13]);
}

// "36 = plain": so many rows were compared and have the bits of that witness; "36 ~": they are
// within the tolerance.
std::string verified_cell(const Row& row) {
  if (row.mount.checked.n_rows == 0) return "-";
  return fmt::format("{} {}", row.mount.checked.n_rows,
                     row.witness.empty() ? "~" : "= " + row.witness);
}

std::string percent(double value) {
  return value > 0 ? fmt::format("{:.1f}", value) : "-";
}

nlohmann::json finite_or_null(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

}  // namespace

std::string short_number(double value) {
  if (!std::isfinite(value)) return "?";
  if (value == 0) return "0";
  const double size = std::fabs(value);
  if (size < 1e-2) return fmt::format("{:.2e}", value);
  return fmt::format("{:.{}f}", value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

TableWidths widths_of(const std::vector<PlanItem>& plan) {
  TableWidths w;
  for (const PlanItem& item : plan) {
    w.op = std::max(w.op, item.op->name.size());
    w.problem = std::max(w.problem, item.problem.name.size());
    for (const Variant* v : item.variants) w.variant = std::max(w.variant, v->name.size());
  }
  return w;
}

TableWidths widths_of(const std::vector<Row>& rows) {
  TableWidths w;
  for (const Row& row : rows) {
    w.op = std::max(w.op, row.op.size());
    w.problem = std::max(w.problem, row.problem.size());
    w.variant = std::max(w.variant, row.variant.size());
    w.mode = std::max(w.mode, row.mode.size());
  }
  return w;
}

std::string table_header(const TableWidths& widths) {
  return line_of(widths, {"op", "case", "variant", "mode", "n", "us", "95 %", "GB/s", "GFLOP/s",
                          "% floor", "bound", "% ISA", "A/A %", "verified"});
}

std::string table_line(const Row& row, const TableWidths& widths) {
  const std::string interval =
      row.us.finite() ? fmt::format("[{}, {}]", short_number(row.us.lo), short_number(row.us.hi))
                      : "[few samples]";
  return line_of(widths, {row.op, row.problem, row.variant, row.mode, std::to_string(row.n_lanes),
                          short_number(row.us.mid), interval, short_number(row.gbps),
                          short_number(row.gflops), percent(row.floor_percent),
                          row.bound.empty() ? "-" : row.bound, percent(row.isa_percent),
                          std::isfinite(row.noise) ? fmt::format("{:.1f}", 100 * row.noise) : "?",
                          verified_cell(row)});
}

std::string ceilings_line(std::string_view when, const Roof& roof) {
  std::string line = fmt::format("ceilings {}: read {} GB/s", when, short_number(roof.read_gbps));
  for (std::string_view type : {"i8", "f32", "bf16"})
    for (const MacRate& rate : roof.rates)
      if (rate.type == type && rate.gmacs == roof.best_gmacs(type))
        line +=
            fmt::format(", {} {} GMAC/s ({})", type, short_number(rate.gmacs), name_of(rate.isa));
  return line + "\n";
}

nlohmann::json to_json(const Row& row) {
  return {{"op", row.op},
          {"case", row.problem},
          {"key", row.key},
          {"variant", row.variant},
          {"numerics", row.numerics},
          {"layout", row.layout},
          {"isa", row.isa},
          {"mode", row.mode},
          {"threads", row.n_lanes},
          {"us", row.us.mid},
          {"us_lo", finite_or_null(row.us.lo)},
          {"us_hi", finite_or_null(row.us.hi)},
          {"samples", row.samples_us.size()},
          {"sm_mhz", row.sm_mhz.empty() ? nlohmann::json() : nlohmann::json(median(row.sm_mhz))},
          {"power_w", row.power_w.empty() ? nlohmann::json() : nlohmann::json(median(row.power_w))},
          {"gb_per_s", row.gbps},
          {"gflop_per_s", row.gflops},
          {"floor_us", row.floor_us},
          {"floor_percent", row.floor_percent},
          {"isa_percent", row.isa_percent},
          {"probed", row.probed},
          {"bound", row.bound},
          {"noise_percent", finite_or_null(100 * row.noise)},
          {"ring_entries", row.mount.n_entries},
          {"ring_read_bytes", row.mount.cold_bytes},
          {"verified_whole", row.mount.checked.n_whole},
          {"verified_sampled", row.mount.checked.n_sampled},
          {"verified_rows", row.mount.checked.n_rows},
          {"witness", row.witness.empty() ? nlohmann::json() : nlohmann::json(row.witness)}};
}

nlohmann::json to_json(const Roof& roof) {
  auto rates = nlohmann::json::array();
  for (const MacRate& rate : roof.rates)
    rates.push_back({{"isa", name_of(rate.isa)}, {"type", rate.type}, {"gmac_per_s", rate.gmacs}});
  return {{"read_gb_per_s", roof.read_gbps}, {"multiply_add", rates}};
}

nlohmann::json to_json(const VerdictRow& row) {
  const Interval& ratio = row.comparison.log_ratio;
  return {{"op", row.op},
          {"case", row.problem},
          {"mode", row.mode},
          {"a", row.a},
          {"b", row.b},
          {"us_a", row.us_a},
          {"us_b", row.us_b},
          {"log_ratio", ratio.mid},
          {"log_ratio_lo", finite_or_null(ratio.lo)},
          {"log_ratio_hi", finite_or_null(ratio.hi)},
          {"least_effect", finite_or_null(row.min_effect)},
          {"verdict", name_of(row.comparison.speed)}};
}

}  // namespace millrace::lab
