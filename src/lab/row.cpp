#include "lab/row.h"

#include <algorithm>

namespace millrace::lab {
namespace {

struct TypedMacs {
  std::string_view type;
  double macs;
};

std::vector<TypedMacs> macs_of(const Floor& floor) {
  return {{"i8", floor.i8_macs}, {"f32", floor.f32_macs}, {"bf16", floor.bf16_macs}};
}

double macs_for(const Floor& floor, std::string_view type) {
  for (const auto& [name, macs] : macs_of(floor))
    if (name == type) return macs;
  return 0;
}

Isa isa_named(const Row& row, const Roof& roof) {
  for (const MacRate& rate : roof.rates)
    if (name_of(rate.isa) == row.isa) return rate.isa;
  return Isa::generic;
}

}  // namespace

FloorTime floor_time(const Floor& floor, const Roof& roof, bool reads_memory) {
  FloorTime least;
  if (reads_memory && roof.read_gbps > 0)
    least = {1e-3 * (floor.read_bytes + floor.write_bytes) / roof.read_gbps, "bytes"};
  for (const auto& [type, macs] : macs_of(floor)) {
    const double rate = roof.best_gmacs(type);
    if (macs > 0 && rate > 0 && 1e-3 * macs / rate > least.us) least = {1e-3 * macs / rate, type};
  }
  return least;
}

void apply_roof(Row& row, const Floor& floor, const Roof& roof, size_t cache_bytes) {
  const bool from_memory = is_cold(row.mode) || row.bytes > static_cast<double>(cache_bytes);
  const FloorTime least = floor_time(floor, roof, from_memory);
  row.floor_us = least.us;
  row.bound = least.bound;
  row.floor_percent = 100 * least.us / row.us.mid;
  const double own = roof.gmacs(isa_named(row, roof), least.bound);
  row.isa_percent = own > 0 ? 100 * 1e-3 * macs_for(floor, least.bound) / own / row.us.mid : 0;
}

namespace {

Row row_of(const CaseRun& run, const Series& s) {
  const Floor& floor = run.problem.floor;
  Row row;
  row.op = run.op->name;
  row.problem = run.problem.name;
  row.key = run.key;
  row.variant = s.variant->name;
  row.numerics = s.variant->numerics;
  row.layout = s.variant->layout;
  row.isa = name_of(s.variant->isa);
  row.mode = s.mode;
  row.us = median_interval(s.us);
  row.samples_us = s.us;
  row.bytes = floor.read_bytes + floor.write_bytes;
  row.macs = floor.i8_macs + floor.f32_macs + floor.bf16_macs;
  row.gbps = 1e-3 * row.bytes / row.us.mid;
  row.gflops = 2e-3 * row.macs / row.us.mid;
  row.noise = run.noise(s.mode);
  row.mount = run.mount;
  for (const Series& twin : run.twins)
    if (twin.variant == s.variant && twin.mode == s.mode) row.twin_us = twin.us;
  return row;
}

}  // namespace

std::vector<Row> rows_of(const CaseRun& run, const Target& target, const Roof& roof) {
  std::vector<Row> rows;
  for (const Series& s : run.series) {
    Row& row = rows.emplace_back(row_of(run, s));
    row.n_lanes = target.n_lanes();
    apply_roof(row, run.problem.floor, roof, target.cache_bytes());
  }
  return rows;
}

bool beats_floor(const Row& row) {
  return row.floor_percent > 100 * (1 + std::max(row.noise, kLeastEffect));
}

}  // namespace millrace::lab
