#include "machine/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "machine/cgroup.h"
#include "machine/cpu.h"
#include "machine/find_host.h"
#include "machine/gpu.h"
#include "machine/host_files.h"

namespace millrace {
namespace {

void find_cpus(const HostFiles& host, const CgroupLimits& limits, Machine& m) {
  const CpuTopology topology = order_cpus(host, cpus_allowed_by_affinity());
  m.cpu_name = find_cpu_name(host);
  m.n_cpus = static_cast<int>(topology.cpus.size());
  m.n_cores = topology.n_cores;
  m.cpus = topology.cpus;
  m.cpu_quota = limits.cpus;
  if (limits.cpus > 0 && limits.cpus < m.n_cpus) {
    // Rounded down: a team that spins past its quota is stopped for the rest of the period.
    m.n_cpus = std::max(1, static_cast<int>(limits.cpus + 0.01));
    m.cpus.clear();
  }
  const CacheSizes caches = find_caches(host, topology.cpus);
  if (caches.l1d_bytes != 0) m.l1d_bytes = caches.l1d_bytes;
  if (caches.l2_bytes != 0) m.l2_bytes = caches.l2_bytes;
  if (caches.llc_bytes != 0) m.llc_bytes = caches.llc_bytes;
  const auto nodes = host.cpu_list("sys/devices/system/node/online");
  m.n_numa_nodes = std::max(1, static_cast<int>(nodes.size()));
}

size_t meminfo_bytes(const std::string& meminfo, std::string_view key) {
  return static_cast<size_t>(number_of(meminfo, key)) << 10;
}

void find_memory(const HostFiles& host, const CgroupLimits& limits, Machine& m) {
  const std::string meminfo = host.text("proc/meminfo").value_or("");
  m.memory_bytes = std::min(meminfo_bytes(meminfo, "MemTotal"), limits.memory_bytes);
  m.memory_available_bytes = std::min(meminfo_bytes(meminfo, "MemAvailable"), limits.memory_free);
  const std::string choice =
      host.text("sys/kernel/mm/transparent_hugepage/enabled").value_or("[never]");
  const size_t open = choice.find('['), close = choice.find(']');
  m.huge_pages = open < close && close != std::string::npos
                     ? choice.substr(open + 1, close - open - 1)
                     : "never";
}

void find_isas(Machine& m) {
  for (Isa isa : {Isa::generic, Isa::avx2, Isa::avx512, Isa::avx512_vnni, Isa::avx512_bf16})
    if (cpu_has(isa)) m.isas.push_back(isa);
  m.has_amx = cpu_has_amx();
  const int sm = m.gpus.empty() ? 0 : m.gpus.front().sm;
  if (sm >= 80) m.isas.push_back(Isa::sm80);
  if (sm == 90) m.isas.push_back(Isa::sm90);
}

void find_cpus_and_memory(const HostFiles& host, Machine& m) {
  const CgroupLimits limits = find_cgroup_limits(host);
  find_cpus(host, limits, m);
  find_memory(host, limits, m);
}

}  // namespace

bool Machine::has(Isa isa) const {
  return std::find(isas.begin(), isas.end(), isa) != isas.end();
}

Machine find_host() {
  const HostFiles host("/");
  Machine m;
  find_cpus_and_memory(host, m);
  find_isas(m);
  return m;
}

Machine find_machine(const std::string& root) {
  const HostFiles host(root);
  Machine m;
  find_cpus_and_memory(host, m);
  GpuSearch found = find_gpus(host);
  m.gpus = std::move(found.gpus);
  m.cuda_driver = found.cuda_driver;
  m.gpu_problem = std::move(found.problem);
  find_isas(m);
  return m;
}

std::string fingerprint(const Machine& m) {
  std::vector<std::string_view> isas, gpus;
  for (Isa isa : m.isas) isas.push_back(name_of(isa));
  for (const Gpu& gpu : m.gpus) gpus.push_back(gpu.name);
  return fmt::format("{}; {}; {} cpus, {} cores; caches {}K {}K {}K; gpu {}", m.cpu_name,
                     fmt::join(isas, " "), m.n_cpus, m.n_cores, m.l1d_bytes >> 10, m.l2_bytes >> 10,
                     m.llc_bytes >> 10,
                     gpus.empty() ? "none" : fmt::format("{}", fmt::join(gpus, ", ")));
}

bool built_with_cuda() {
#ifdef MILLRACE_CUDA
  return true;
#else
  return false;
#endif
}

}  // namespace millrace
