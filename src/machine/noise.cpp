#include "machine/noise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/clock.h"
#include "machine/cgroup.h"

namespace millrace {
namespace {

// Ten-millisecond ticks over about a second: less than this is not told from nothing.
constexpr double kOthersAllowed = 0.04;  // of one CPU, per CPU
constexpr double kStolenAllowed = 0.02;
constexpr double kSpreadAllowed = 0.08;

int64_t own_cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

struct Ticks {
  int64_t busy = 0, stolen = 0;
};

// A "cpuN user nice system idle iowait irq softirq steal ..." line.
Ticks parse_cpu_line(const std::string& line) {
  std::istringstream in(line);
  int64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  in >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
  return {user + nice + system + irq + softirq, steal};
}

size_t thermal_events(const HostFiles& host, const std::vector<int>& cpus) {
  size_t n = 0;
  for (int cpu : cpus) {
    const std::string at = fmt::format("sys/devices/system/cpu/cpu{}/thermal_throttle/", cpu);
    n += static_cast<size_t>(host.number(at + "core_throttle_count").value_or(0));
    n += static_cast<size_t>(host.number(at + "package_throttle_count").value_or(0));
  }
  return n;
}

}  // namespace

std::string why_not_quiet(const Noise& noise, int n_cpus) {
  std::vector<std::string> reasons;
  if (noise.others > kOthersAllowed * n_cpus)
    reasons.push_back(fmt::format("other processes used {:.2f} CPUs (load average {:.1f})",
                                  noise.others, noise.load_average));
  if (noise.stolen > kStolenAllowed * n_cpus)
    reasons.push_back(fmt::format("the hypervisor took {:.2f} CPUs", noise.stolen));
  if (noise.n_throttled > 0)
    reasons.push_back(fmt::format("the CPUs were throttled {} times", noise.n_throttled));
  if (noise.spread > kSpreadAllowed)
    reasons.push_back(
        fmt::format("the median round was {:.0f} % below the best", 100 * noise.spread));
  if (reasons.empty()) return "";
  return fmt::format("not quiet: {}", fmt::join(reasons, "; "));
}

NoiseWatch::NoiseWatch(const HostFiles& host, std::vector<int> cpus)
    : host_(host), cpus_(std::move(cpus)), begin_(count()) {}

NoiseWatch::Counts NoiseWatch::count() const {
  Counts c{.wall_ns = now_ns(), .own_ns = own_cpu_ns()};
  const std::string stat = host_.text("proc/stat").value_or("");
  for (int cpu : cpus_) {
    const Ticks t = parse_cpu_line(value_of(stat, fmt::format("cpu{}", cpu)).value_or(""));
    c.busy_ticks += t.busy;
    c.stolen_ticks += t.stolen;
  }
  c.n_throttled = find_cgroup_limits(host_).n_throttled + thermal_events(host_, cpus_);
  return c;
}

Noise NoiseWatch::stop() const {
  const Counts end = count();
  const double wall = static_cast<double>(std::max<int64_t>(1, end.wall_ns - begin_.wall_ns));
  const double tick_ns = 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto busy = static_cast<double>(end.busy_ticks - begin_.busy_ticks) * tick_ns;
  const auto own = static_cast<double>(end.own_ns - begin_.own_ns);
  const auto stolen = static_cast<double>(end.stolen_ticks - begin_.stolen_ticks) * tick_ns;
  Noise noise;
  noise.others = std::max(0.0, busy - own) / wall;
  noise.stolen = std::max(0.0, stolen) / wall;
  noise.n_throttled = end.n_throttled - std::min(end.n_throttled, begin_.n_throttled);
  noise.load_average = std::strtod(host_.text("proc/loadavg").value_or("0").c_str(), nullptr);
  return noise;
}

}  // namespace millrace
