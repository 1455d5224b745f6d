#include "machine/health.h"

#include <fmt/format.h>

#include <algorithm>

namespace millrace {
namespace {

using Findings = std::vector<Finding>;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kUnusableMemory = 256 * kMiB;     // less than the smallest model and its KV
constexpr size_t kLittleMemory = 4 * 1024 * kMiB;  // a 4-bit model of 4 billion weights needs more
// Five barriers a layer in 30 layers: a microsecond each is 0.15 ms of every token.
constexpr double kSlowBarrierNs = 1000;

void examine_cpu(const Machine& m, const Ceilings& c, Findings& out) {
  if (!m.has(Isa::avx2))
    out.push_back({Severity::warning,
                   "this CPU shows no AVX2: kernels fall back to plain code, many times slower",
                   "use an x86-64 CPU of 2013 or later; on a virtual machine, pass the host's CPU "
                   "features through"});
  if (m.has_amx)
    out.push_back({Severity::note,
                   "this CPU has AMX, which no kernel here uses: its int8 ceiling is not counted",
                   "nothing to do: src/kernels/matmul/README.md has the measurement"});
  if (m.n_cpus == 1)
    out.push_back({Severity::warning, "one CPU: a single lane cannot use the memory bandwidth",
                   "give the process more CPUs (taskset, container or virtual machine settings)"});
  if (m.cpus.empty() && m.cpu_quota > 0)
    out.push_back(
        {Severity::warning,
         fmt::format("the control group grants {:.2f} CPUs' worth of time; lanes are not "
                     "pinned and are stopped when it is spent",
                     m.cpu_quota),
         "raise the quota (docker --cpus, cpu.max), or grant whole CPUs (--cpuset-cpus)"});
  if (m.n_numa_nodes > 1)
    out.push_back({Severity::note,
                   fmt::format("{} NUMA nodes: memory is not placed by node", m.n_numa_nodes),
                   "for steady numbers keep to one: numactl --cpunodebind=0 --membind=0"});
  if (c.barrier_ns > kSlowBarrierNs)
    out.push_back({Severity::warning,
                   fmt::format("{} lanes take {:.1f} us to meet", c.n_lanes, c.barrier_ns / 1000),
                   "stop what shares the CPUs, or use fewer lanes"});
}

void examine_memory(const Machine& m, const Ceilings& c, Findings& out) {
  const size_t mib = m.memory_available_bytes / kMiB;
  if (m.memory_available_bytes < kUnusableMemory || c.read_gbps_all <= 0)
    out.push_back({Severity::unusable, fmt::format("{} MiB of memory available", mib),
                   "free memory, or raise the control group's limit"});
  else if (m.memory_available_bytes < kLittleMemory)
    out.push_back({Severity::warning,
                   fmt::format("{} MiB of memory available: only small models fit", mib),
                   "free memory, or raise the control group's limit"});
  if (m.huge_pages == "never")
    out.push_back({Severity::warning,
                   "transparent huge pages are off: weights on small pages miss the TLB",
                   "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"});
  if (c.n_lanes > 1 && c.read_gbps_all < 1.2 * c.read_gbps_one && c.read_gbps_all > 0)
    out.push_back(
        {Severity::note,
         fmt::format("{} lanes read {:.1f} GB/s, hardly more than one", c.n_lanes, c.read_gbps_all),
         "the CPUs may be threads of one core, or the memory bus is shared: decode gains "
         "little from more lanes"});
}

}  // namespace

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::unusable:
      return "unusable";
  }
  return "unknown";
}

std::optional<Finding> examine_gpu(const Machine& m, bool cuda_build) {
  if (m.gpus.empty())
    return Finding{cuda_build ? Severity::warning : Severity::note, "no GPU", m.gpu_problem};
  const Gpu& gpu = m.gpus[0];
  if (!cuda_build)
    return Finding{Severity::warning,
                   fmt::format("this build has no GPU code, so {} is not used", gpu.name),
                   "install the CUDA toolkit (nvcc) and build again, or use the cuda preset"};
  if (gpu.sm < 80)
    return Finding{Severity::warning,
                   fmt::format("{} has compute capability {}.{}; the GPU code needs 8.0", gpu.name,
                               gpu.sm / 10, gpu.sm % 10),
                   "use a GPU of the Ampere generation or later; the CPU is used meanwhile"};
  return std::nullopt;
}

std::vector<Finding> examine(const Machine& machine, const Ceilings& ceilings, bool cuda_build) {
  Findings out;
  examine_cpu(machine, ceilings, out);
  examine_memory(machine, ceilings, out);
  if (auto finding = examine_gpu(machine, cuda_build)) out.push_back(*std::move(finding));
  if (!ceilings.quiet)
    out.push_back({Severity::warning, ceilings.noise,
                   "measure again when nothing else runs: a ceiling found now may be too low, and "
                   "shares of it too high"});
  std::stable_sort(out.begin(), out.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return out;
}

}  // namespace millrace
