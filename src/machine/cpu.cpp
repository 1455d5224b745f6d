#include "machine/cpu.h"

#include <cpuid.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace millrace {
namespace {

// The CPUs that share a core with `cpu`, or `cpu` alone where the system does not say.
std::vector<int> siblings(const HostFiles& host, int cpu) {
  auto list =
      host.cpu_list(fmt::format("sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
  if (list.empty()) list.push_back(cpu);
  return list;
}

struct CacheEntry {
  int level = 0;
  size_t bytes = 0;
  std::string shared_by;
};

std::vector<CacheEntry> caches_of(const HostFiles& host, int cpu) {
  std::vector<CacheEntry> out;
  for (int index = 0;; ++index) {
    const std::string at = fmt::format("sys/devices/system/cpu/cpu{}/cache/index{}", cpu, index);
    const auto level = host.number(at + "/level");
    if (!level) return out;
    if (host.text(at + "/type").value_or("") == "Instruction") continue;
    out.push_back({static_cast<int>(*level), host.size(at + "/size").value_or(0),
                   host.text(at + "/shared_cpu_list").value_or("")});
  }
}

// Deterministic cache parameters: leaf 4 on Intel, 0x8000001D on AMD, of the same shape.
CacheSizes caches_by_cpuid() {
  CacheSizes sizes;
  for (const unsigned leaf : {4u, 0x8000001Du}) {
    for (unsigned index = 0; index < 16; ++index) {
      unsigned a = 0, b = 0, c = 0, d = 0;
      if (!__get_cpuid_count(leaf, index, &a, &b, &c, &d)) break;
      const unsigned type = a & 31, level = (a >> 5) & 7;
      if (type == 0) break;
      const size_t bytes =
          size_t{(b >> 22) + 1} * (((b >> 12) & 1023) + 1) * ((b & 4095) + 1) * (size_t{c} + 1);
      if (type == 2) continue;  // instructions
      if (level == 1) sizes.l1d_bytes = bytes;
      if (level == 2) sizes.l2_bytes = bytes;
      if (level >= 2) sizes.llc_bytes = std::max(sizes.llc_bytes, bytes);
    }
    if (sizes.l1d_bytes != 0) return sizes;
  }
  return sizes;
}

std::string brand_by_cpuid() {
  unsigned words[12] = {};
  for (unsigned i = 0; i < 3; ++i) {
    unsigned* w = words + 4 * i;
    if (!__get_cpuid(0x80000002u + i, &w[0], &w[1], &w[2], &w[3])) return "unknown CPU";
  }
  char text[sizeof words + 1] = {};
  std::memcpy(text, words, sizeof words);
  return text;
}

}  // namespace

std::vector<int> cpus_allowed_by_affinity() {
  std::vector<int> out;
  cpu_set_t* set = CPU_ALLOC(kMaxCpus);
  const size_t bytes = CPU_ALLOC_SIZE(kMaxCpus);
  CPU_ZERO_S(bytes, set);
  if (sched_getaffinity(0, bytes, set) == 0)
    for (int cpu = 0; cpu < kMaxCpus; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set)) out.push_back(cpu);
  CPU_FREE(set);
  if (out.empty()) out.push_back(0);
  return out;
}

CpuTopology order_cpus(const HostFiles& host, const std::vector<int>& allowed) {
  // The rank of a CPU is its place among the allowed siblings of its core.
  std::map<int, int> n_seen;  // by the core's first CPU
  std::vector<std::pair<int, int>> ranked;
  for (int cpu : allowed) ranked.emplace_back(n_seen[siblings(host, cpu).front()]++, cpu);
  std::stable_sort(ranked.begin(), ranked.end());
  CpuTopology out;
  for (const auto& [rank, cpu] : ranked) out.cpus.push_back(cpu);
  out.n_cores = static_cast<int>(n_seen.size());
  return out;
}

CacheSizes find_caches(const HostFiles& host, const std::vector<int>& cpus) {
  CacheSizes sizes;
  std::map<int, std::map<std::string, size_t>> by_level;
  for (int cpu : cpus)
    for (const CacheEntry& c : caches_of(host, cpu)) by_level[c.level][c.shared_by] = c.bytes;
  if (by_level.empty()) return caches_by_cpuid();
  if (by_level.contains(1)) sizes.l1d_bytes = by_level[1].begin()->second;
  if (by_level.contains(2)) sizes.l2_bytes = by_level[2].begin()->second;
  for (const auto& [shared_by, bytes] : by_level.rbegin()->second) sizes.llc_bytes += bytes;
  return sizes;
}

std::string find_cpu_name(const HostFiles& host) {
  return value_of(host.text("proc/cpuinfo").value_or(""), "model name").value_or(brand_by_cpuid());
}

}  // namespace millrace
