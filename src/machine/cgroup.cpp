#include "machine/cgroup.h"

#include <algorithm>
#include <charconv>

namespace millrace {
namespace {

// "quota period" of cpu.max; "max 100000" is no limit.
double parse_cpu_max(std::string_view text) {
  int64_t quota = 0, period = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, quota);
  if (first.ec != std::errc() || first.ptr == end) return 0;
  if (std::from_chars(first.ptr + 1, end, period).ec != std::errc() || period <= 0) return 0;
  return static_cast<double>(quota) / static_cast<double>(period);
}

void limit_cpus(CgroupLimits& limits, double cpus) {
  if (cpus > 0 && (limits.cpus == 0 || cpus < limits.cpus)) limits.cpus = cpus;
}

void limit_memory(CgroupLimits& limits, std::optional<size_t> limit, std::optional<size_t> used,
                  const std::optional<std::string>& stat) {
  if (!limit) return;
  // The page cache counts as used, but the kernel drops it before it refuses memory.
  const int64_t cache = number_of(stat.value_or(""), "inactive_file");
  const size_t held = used.value_or(0) - std::min(used.value_or(0), static_cast<size_t>(cache));
  limits.memory_bytes = std::min(limits.memory_bytes, *limit);
  limits.memory_free = std::min(limits.memory_free, *limit - std::min(*limit, held));
}

void read_v2(const HostFiles& host, const std::string& group, CgroupLimits& limits) {
  limit_cpus(limits, parse_cpu_max(host.text(group + "/cpu.max").value_or("")));
  limit_memory(limits, host.size(group + "/memory.max"), host.size(group + "/memory.current"),
               host.text(group + "/memory.stat"));
}

void read_v1_cpu(const HostFiles& host, const std::string& group, CgroupLimits& limits) {
  const auto quota = host.number(group + "/cpu.cfs_quota_us");
  const auto period = host.number(group + "/cpu.cfs_period_us");
  if (quota && period && *quota > 0 && *period > 0)
    limit_cpus(limits, static_cast<double>(*quota) / static_cast<double>(*period));
}

void read_v1_memory(const HostFiles& host, const std::string& group, CgroupLimits& limits) {
  auto limit = host.size(group + "/memory.limit_in_bytes");
  if (limit && *limit >= size_t{1} << 62) limit.reset();  // version 1 writes a huge number: none
  limit_memory(limits, limit, host.size(group + "/memory.usage_in_bytes"),
               host.text(group + "/memory.stat"));
}

size_t throttled_periods(const HostFiles& host, const std::string& group) {
  return static_cast<size_t>(
      number_of(host.text(group + "/cpu.stat").value_or(""), "nr_throttled"));
}

using Read = void (*)(const HostFiles&, const std::string&, CgroupLimits&);

// From the group itself up to the mount. Inside a container the path may be the host's, which is
// not visible; the walk then ends at the mount, which is the container's own group.
void walk(const HostFiles& host, const std::string& mount, std::string path, Read read,
          CgroupLimits& limits) {
  for (;;) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    read(host, mount + path, limits);
    limits.n_throttled += throttled_periods(host, mount + path);
    if (path.empty()) return;
    path.erase(std::min(path.rfind('/'), path.size()));
  }
}

bool names_controller(std::string_view list, std::string_view name) {
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (list.substr(at, end - at) == name) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

CgroupLimits find_cgroup_limits(const HostFiles& host) {
  CgroupLimits limits;
  const std::string groups = host.text("proc/self/cgroup").value_or("");
  const std::string base = "sys/fs/cgroup";
  for (size_t at = 0; at < groups.size();) {
    const size_t end = std::min(groups.find('\n', at), groups.size());
    const std::string line = groups.substr(at, end - at);
    at = end + 1;
    const size_t one = line.find(':'), two = line.find(':', one + 1);
    if (one == std::string::npos || two == std::string::npos) continue;
    const std::string controllers = line.substr(one + 1, two - one - 1);
    const std::string path = line.substr(two + 1);
    if (controllers.empty()) {
      walk(host, base, path, read_v2, limits);
      continue;
    }
    if (names_controller(controllers, "cpu")) {
      const std::string joint = base + "/" + controllers;
      walk(host, host.exists(joint) ? joint : base + "/cpu", path, read_v1_cpu, limits);
    }
    if (names_controller(controllers, "memory"))
      walk(host, base + "/memory", path, read_v1_memory, limits);
  }
  return limits;
}

}  // namespace millrace
