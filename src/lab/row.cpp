#include "lab/row.h"

#include <algorithm>

#include "lab/witness.h"

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

// What one ceiling asks of a case that it bounds: its bytes at the read bandwidth, or its
// multiply-adds at a rate.
double bytes_us(const Floor& floor, double gbps) {
  return gbps > 0 ? 1e-3 * (floor.read_bytes + floor.write_bytes) / gbps : 0;
}
double macs_us(const Floor& floor, std::string_view type, double gmacs) {
  return gmacs > 0 ? 1e-3 * macs_for(floor, type) / gmacs : 0;
}

// What a roof asks where `bound` is what bounds the case; with multiply-adds, of the best ISA or of
// one. 0 where that was not measured.
double floor_us(const Floor& floor, std::string_view bound, const Roof& roof) {
  return bound == "bytes" ? bytes_us(floor, roof.read_gbps)
                          : macs_us(floor, bound, roof.best_gmacs(bound));
}
double isa_floor_us(const Floor& floor, std::string_view bound, Isa isa, const Roof& roof) {
  return bound == "bytes" ? 0 : macs_us(floor, bound, roof.gmacs(isa, bound));
}

}  // namespace

FloorTime floor_time(const Floor& floor, const Roof& roof, bool reads_memory) {
  FloorTime least;
  if (reads_memory && roof.read_gbps > 0) least = {bytes_us(floor, roof.read_gbps), "bytes"};
  for (const auto& [type, macs] : macs_of(floor)) {
    const double us = macs > 0 ? macs_us(floor, type, roof.best_gmacs(type)) : 0;
    if (us > least.us) least = {us, type};
  }
  return least;
}

namespace {

// Without probes, of the session's best ceilings.
void apply_ceilings(Row& row, const Floor& floor, const Series& s, const Roof& best,
                    const std::vector<Roof>& probes, bool from_memory) {
  const FloorTime least = floor_time(floor, best, from_memory);
  row.floor_us = least.us;
  row.bound = least.bound;
  row.probed = probes.size() == s.us.size();
  std::vector<double> floors, own;
  for (size_t i = 0; i < s.us.size(); ++i) {
    const Roof& roof = row.probed ? probes[i] : best;
    floors.push_back(100 * floor_us(floor, least.bound, roof) / s.us[i]);
    own.push_back(100 * isa_floor_us(floor, least.bound, s.variant->isa, roof) / s.us[i]);
  }
  row.floor_percent = median(floors);
  row.isa_percent = median(own);
}

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
  row.sm_mhz = s.sm_mhz;
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

void add_loads(Row& row, const std::vector<GpuLoad>& loads) {
  for (const GpuLoad& load : loads) {
    if (load.power_w) row.power_w.push_back(*load.power_w);
    if (load.clock_reasons) row.clock_reasons.push_back(static_cast<double>(*load.clock_reasons));
  }
}

std::string witness_name(const CaseRun& run, const Target& target, const Variant& variant) {
  const Variant* witness = witness_for(*run.op, run.problem, variant);
  if (witness == nullptr)
    witness = peer_for(*run.op, run.problem, variant,
                       [&](const Variant& other) { return target.has(other); });
  return witness == nullptr ? "" : std::string(witness->name);
}

}  // namespace

std::vector<Row> rows_of(const CaseRun& run, const Target& target, const Roof& roof) {
  std::vector<Row> rows;
  for (const Series& s : run.series) {
    Row& row = rows.emplace_back(row_of(run, s));
    row.n_lanes = target.n_lanes();
    row.witness = witness_name(run, target, *s.variant);
    const bool from_memory =
        is_cold(row.mode) || row.bytes > static_cast<double>(target.cache_bytes());
    const Probes probes = run.probes_of(s.mode);
    apply_ceilings(row, run.problem.floor, s, roof, probes.roofs, from_memory);
    if (!row.twin_us.empty()) add_loads(row, probes.loads);
  }
  return rows;
}

bool beats_floor(const Row& row) {
  return row.floor_percent > 100 * (1 + std::max(row.noise, kLeastEffect));
}

}  // namespace millrace::lab
