#include "machine/host_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "machine/cgroup.h"

namespace millrace {
namespace {

constexpr const char* kCpus = "sys/devices/system/cpu/";

// "cpu MHz : 2445.398" of every "processor : N" block, where cpufreq has no folder.
double cpuinfo_mhz(const std::string& cpuinfo, int cpu) {
  const size_t block = cpuinfo.find(fmt::format("processor\t: {}\n", cpu));
  if (block == std::string::npos) return 0;
  const size_t end = std::min(cpuinfo.find("\n\n", block), cpuinfo.size());
  const size_t at = cpuinfo.find("cpu MHz", block);
  if (at == std::string::npos || at > end) return 0;
  const size_t colon = cpuinfo.find(':', at);
  return colon < end ? std::strtod(cpuinfo.c_str() + colon + 1, nullptr) : 0;
}

size_t count_throttled(const HostFiles& host, const std::vector<int>& cpus) {
  size_t n = find_cgroup_limits(host).n_throttled;
  for (const int cpu : cpus) {
    const std::string at = fmt::format("{}cpu{}/thermal_throttle/", kCpus, cpu);
    n += static_cast<size_t>(host.number(at + "core_throttle_count").value_or(0));
  }
  return n;
}

double share(int64_t part, int64_t whole) {
  if (whole <= 0) return 0;
  return std::clamp(static_cast<double>(part) / static_cast<double>(whole), 0.0, 1.0);
}

// The CPU's own sensors; a disk's or a network card's says nothing about it.
double hottest_cpu_c(const HostFiles& host) {
  double hottest = 0;
  for (const std::string& name : host.names("sys/class/hwmon")) {
    const std::string at = "sys/class/hwmon/" + name;
    const std::string sensor = host.text(at + "/name").value_or("");
    if (sensor != "coretemp" && sensor != "k10temp" && sensor != "zenpower") continue;
    for (int i = 1; i <= 64; ++i) {
      const auto value = host.number(fmt::format("{}/temp{}_input", at, i));
      if (!value && i > 1) break;
      hottest = std::max(hottest, static_cast<double>(value.value_or(0)) / 1000);
    }
  }
  return hottest;
}

void read_memory(const HostFiles& host, HostState& out) {
  const std::string meminfo = host.text("proc/meminfo").value_or("");
  const auto bytes = [&](std::string_view key) {
    return static_cast<size_t>(number_of(meminfo, key)) << 10;
  };
  const CgroupLimits limits = find_cgroup_limits(host);
  out.memory_bytes = std::min(bytes("MemTotal"), limits.memory_bytes);
  out.memory_available_bytes = std::min(bytes("MemAvailable"), limits.memory_free);
  const size_t swap = bytes("SwapTotal"), swap_free = bytes("SwapFree");
  out.swap_used_bytes = swap - std::min(swap, swap_free);
}

}  // namespace

// "user nice system idle iowait irq softirq steal ..."
HostWatch::Ticks HostWatch::parse(const std::string& line) {
  std::istringstream in(line);
  int64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  in >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
  const int64_t busy = user + nice + system + irq + softirq;
  return {busy, busy + idle + iowait + steal, steal};
}

HostState HostWatch::now() {
  HostState out;
  const std::string stat = host_.text("proc/stat").value_or("");
  std::vector<int> cpus = host_.cpu_list("sys/devices/system/cpu/online");
  if (cpus.size() > kMostCpusShown) cpus.resize(kMostCpusShown);
  const Ticks all = parse(value_of(stat, "cpu").value_or(""));
  out.use = share(all.busy - last_.busy, all.all - last_.all);
  out.stolen = share(all.stolen - last_.stolen, all.all - last_.all);
  last_ = all;
  last_cpus_.resize(cpus.size());
  std::string cpuinfo;
  for (size_t i = 0; i < cpus.size(); ++i) {
    const Ticks ticks = parse(value_of(stat, fmt::format("cpu{}", cpus[i])).value_or(""));
    const Ticks last = std::exchange(last_cpus_[i], ticks);
    const auto khz = host_.number(fmt::format("{}cpu{}/cpufreq/scaling_cur_freq", kCpus, cpus[i]));
    if (!khz && cpuinfo.empty()) cpuinfo = host_.text("proc/cpuinfo").value_or("none");
    out.cpus.push_back({cpus[i], share(ticks.busy - last.busy, ticks.all - last.all),
                        khz ? static_cast<double>(*khz) / 1000 : cpuinfo_mhz(cpuinfo, cpus[i])});
  }
  std::istringstream load(host_.text("proc/loadavg").value_or(""));
  load >> out.load_1 >> out.load_5 >> out.load_15;
  read_memory(host_, out);
  out.temperature_c = hottest_cpu_c(host_);
  const size_t n_throttled = count_throttled(host_, cpus);
  if (has_last_) out.n_throttled = n_throttled - std::min(n_throttled, last_throttled_);
  last_throttled_ = n_throttled;
  has_last_ = true;
  return out;
}

}  // namespace millrace
