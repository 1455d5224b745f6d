#include "lab/metric.h"

namespace millrace::lab {

Metric metric_of(Subject subject, std::string name, std::string unit, std::string better,
                 std::vector<double> samples) {
  Metric out;
  out.subject = std::move(subject);
  out.name = std::move(name);
  out.unit = std::move(unit);
  out.better = std::move(better);
  out.value = median_interval(samples);
  out.samples = std::move(samples);
  return out;
}

Metric metric_of(const Row& row, const std::string& kind) {
  Metric out;
  out.subject = {kind, row.op, row.problem, row.variant, row.mode, row.n_lanes};
  out.value = row.us;
  out.noise = row.noise;
  out.samples = row.samples_us;
  out.twin = row.twin_us;
  out.kernel = KernelFacts{.key = row.key,
                           .numerics = row.numerics,
                           .layout = row.layout,
                           .isa = row.isa,
                           .bytes = row.bytes,
                           .macs = row.macs,
                           .gbps = row.gbps,
                           .gflops = row.gflops,
                           .floor_us = row.floor_us,
                           .floor_percent = row.floor_percent,
                           .isa_percent = row.isa_percent,
                           .bound = row.bound,
                           .ring_entries = static_cast<int64_t>(row.mount.n_entries),
                           .ring_bytes = row.mount.cold_bytes,
                           .verified_whole = static_cast<int64_t>(row.mount.checked.n_whole),
                           .verified_sampled = static_cast<int64_t>(row.mount.checked.n_sampled),
                           .verified_rows = static_cast<int64_t>(row.mount.checked.n_rows),
                           .witness = row.witness};
  return out;
}

Row row_of(const Metric& metric) {
  const KernelFacts facts = metric.kernel.value_or(KernelFacts{});
  Row row;
  row.op = metric.subject.name;
  row.problem = metric.subject.problem;
  row.variant = metric.subject.variant;
  row.mode = metric.subject.mode;
  row.n_lanes = metric.subject.n_lanes;
  row.us = metric.value;
  row.noise = metric.noise;
  row.samples_us = metric.samples;
  row.twin_us = metric.twin;
  row.key = facts.key;
  row.numerics = facts.numerics;
  row.layout = facts.layout;
  row.isa = facts.isa;
  row.bytes = facts.bytes;
  row.macs = facts.macs;
  row.gbps = facts.gbps;
  row.gflops = facts.gflops;
  row.floor_us = facts.floor_us;
  row.floor_percent = facts.floor_percent;
  row.isa_percent = facts.isa_percent;
  row.bound = facts.bound;
  row.mount.n_entries = static_cast<size_t>(facts.ring_entries);
  row.mount.cold_bytes = facts.ring_bytes;
  row.mount.checked.n_whole = static_cast<size_t>(facts.verified_whole);
  row.mount.checked.n_sampled = static_cast<size_t>(facts.verified_sampled);
  row.mount.checked.n_rows = static_cast<size_t>(facts.verified_rows);
  row.witness = facts.witness;
  return row;
}

}  // namespace millrace::lab
