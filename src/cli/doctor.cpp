// millrace doctor: what this machine is, what it can do, what is wrong with it and what to do.
#include <fmt/color.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/commands.h"
#include "lab/report.h"
#include "lab/target.h"
#include "machine/ceilings.h"
#include "machine/health.h"
#include "machine/json.h"
#include "machine/machine.h"

namespace millrace::cli {
namespace {

// Colours on a terminal, plain text into a pipe or where NO_COLOR is set.
class Paint {
 public:
  Paint() : on_(isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr) {}
  std::string operator()(fmt::text_style style, std::string_view text) const {
    return on_ ? fmt::format(style, "{}", text) : std::string(text);
  }

 private:
  bool on_;
};

void print_heading(const Paint& paint, std::string_view text) {
  fmt::print("{}\n", paint(fmt::emphasis::bold, text));
}

void print_row(std::string_view key, std::string_view value) {
  fmt::print("  {:<13} {}\n", key, value);
}

std::string cpus_text(const Machine& m) {
  constexpr size_t kShown = 8;
  const std::vector<int> first(m.cpus.begin(), m.cpus.begin() + std::min(kShown, m.cpus.size()));
  const std::string pins = m.cpus.empty()
                               ? "not pinned"
                               : fmt::format("lanes pinned to {}{}", fmt::join(first, " "),
                                             m.cpus.size() > kShown ? " ..." : "");
  return fmt::format("{} on {} cores, {}", m.n_cpus, m.n_cores, pins);
}

std::string isas_text(const Machine& m) {
  std::vector<std::string_view> names;
  for (Isa isa : m.isas) names.push_back(name_of(isa));
  return fmt::format("{}", fmt::join(names, " "));
}

void print_gpus(const Machine& m) {
  if (m.gpus.empty()) print_row("GPU", "none");
  for (const Gpu& g : m.gpus)
    print_row(fmt::format("GPU {}", g.index),
              fmt::format("{}, compute capability {}.{}, {} SMs, {}, L2 {}", g.name, g.sm / 10,
                          g.sm % 10, g.n_sms, size_text(g.memory_bytes), size_text(g.l2_bytes)));
  if (m.cuda_driver != 0)
    print_row("Driver", fmt::format("CUDA {}.{}", m.cuda_driver / 1000, m.cuda_driver % 1000 / 10));
}

void print_machine(const Machine& m, const Paint& paint) {
  print_heading(paint, "Machine");
  print_row("CPU", m.cpu_name);
  print_row("CPUs", cpus_text(m));
  print_row("Instructions", isas_text(m));
  print_row("Caches", fmt::format("L1d {}, L2 {} per core; last level {}", size_text(m.l1d_bytes),
                                  size_text(m.l2_bytes), size_text(m.llc_bytes)));
  print_row("NUMA nodes", fmt::format("{}", m.n_numa_nodes));
  print_row("Memory", fmt::format("{}, {} available; huge pages: {}", size_text(m.memory_bytes),
                                  size_text(m.memory_available_bytes), m.huge_pages));
  print_gpus(m);
  print_row("Build", fmt::format("millrace {}, {}", MILLRACE_VERSION,
                                 built_with_cuda() ? "CPU and CUDA" : "CPU only"));
}

void print_ceilings(const Ceilings& c, const Paint& paint) {
  fmt::print("\n");
  print_heading(paint, fmt::format("{:<26}{:>12}{:>12}", "Ceilings, measured", "one lane",
                                   fmt::format("{} lanes", c.n_lanes)));
  fmt::print("  {:<18}{:<6}{:>12.1f}{:>12.1f}  ({})\n", "read", "GB/s", c.read_gbps_one,
             c.read_gbps_all, c.read_loop);
  for (const Rate& r : c.rates)
    fmt::print("  {:<18}{:<6}{:>12.1f}{:>12.1f}\n",
               fmt::format("{} {}", name_of(r.type), name_of(r.isa)), "GMAC/s", r.gmacs_one,
               r.gmacs_all);
  if (c.n_lanes > 1)
    fmt::print("  {:<18}{:<6}{:>12}{:>12.0f}\n", "barrier", "ns", "", c.barrier_ns);
}

// What the first GPU reaches, where this build can use it.
Result<lab::Roof> measure_gpu(const Machine& machine) {
  if (machine.gpus.empty() || !built_with_cuda())
    return error(Code::unavailable, "no GPU that this build can use");
  MILLRACE_ASSIGN(const auto target, lab::make_target("cuda", machine, 0));
  return target->measure_roof(Effort::full);
}

void print_gpu(const Machine& machine, const Result<lab::Roof>& gpu, const Paint& paint) {
  if (machine.gpus.empty() || !built_with_cuda()) return;
  fmt::print("\n");
  print_heading(paint, fmt::format("GPU {}, measured", machine.gpus[0].index));
  if (!gpu.ok()) {
    fmt::print("  cannot be used: {}\n", gpu.status().message());
    return;
  }
  fmt::print("  {:<18}{:<6}{:>12.0f}\n", "read", "GB/s", gpu.value().read_gbps);
  for (const lab::MacRate& r : gpu.value().rates)
    fmt::print("  {:<18}{:<6}{:>12.0f}\n", fmt::format("{} {}", r.type, name_of(r.isa)), "GMAC/s",
               r.gmacs);
}

void print_findings(const std::vector<Finding>& findings, const Paint& paint) {
  fmt::print("\n");
  print_heading(paint, "Findings");
  if (findings.empty()) fmt::print("  {}\n", paint(fg(fmt::terminal_color::green), "none"));
  for (const Finding& f : findings) {
    const auto colour = f.severity == Severity::note      ? fmt::terminal_color::cyan
                        : f.severity == Severity::warning ? fmt::terminal_color::yellow
                                                          : fmt::terminal_color::red;
    fmt::print("  {} {}\n  {:<8} {}\n",
               paint(fg(colour), fmt::format("{:<8}", name_of(f.severity))), f.what, "",
               paint(fmt::emphasis::faint, f.remedy));
  }
}

bool usable(const std::vector<Finding>& findings) {
  return findings.empty() || findings.front().severity != Severity::unusable;
}

void print_json(const Machine& machine, const Ceilings& ceilings, const Result<lab::Roof>& gpu,
                const std::vector<Finding>& findings) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const Finding& f : findings)
    list.push_back({{"severity", name_of(f.severity)}, {"what", f.what}, {"remedy", f.remedy}});
  const Json all = {{"version", MILLRACE_VERSION},
                    {"time", utc_now()},
                    {"cuda_build", built_with_cuda()},
                    {"machine", Json::parse(to_json(machine))},
                    {"ceilings", Json::parse(to_json(ceilings))},
                    {"gpu_ceilings", gpu.ok() ? Json(lab::to_json(gpu.value())) : Json()},
                    {"findings", list},
                    {"usable", usable(findings)}};
  cli::print_json(all);
}

int doctor(const Log& log, bool json) {
  const Paint paint;
  const Machine machine = find_machine();
  if (!json) {
    print_machine(machine, paint);
    std::fflush(stdout);
  }
  const int64_t begin = now_ns();
  const Ceilings ceilings = measure_ceilings(machine, Effort::full);
  log.debug("ceilings measured", "ms", (now_ns() - begin) / 1'000'000, "quiet", ceilings.quiet);
  const auto gpu = measure_gpu(machine);
  const auto findings = examine(machine, ceilings, built_with_cuda());
  if (json) {
    print_json(machine, ceilings, gpu, findings);
  } else {
    print_ceilings(ceilings, paint);
    print_gpu(machine, gpu, paint);
    print_findings(findings, paint);
  }
  return usable(findings) ? 0 : kFailed;
}

}  // namespace

void add_doctor(App& app, const Log& log) {
  auto json = std::make_shared<bool>(false);
  Command command =
      app.add("doctor", "Show this machine's hardware and measured limits, and what to fix");
  command.flag("--json", *json, "Print JSON");
  command.runs([json, &log] { return doctor(log, *json); });
}

}  // namespace millrace::cli
