#include "lab/target.h"

#include <algorithm>
#include <cmath>

#include "machine/health.h"

namespace millrace::lab {

double Roof::best_gmacs(std::string_view type) const {
  double best = 0;
  for (const MacRate& rate : rates)
    if (rate.type == type) best = std::max(best, rate.gmacs);
  return best;
}

double Roof::gmacs(Isa isa, std::string_view type) const {
  for (const MacRate& rate : rates)
    if (rate.isa == isa && rate.type == type) return rate.gmacs;
  return 0;
}

Roof max_of(const Roof& a, const Roof& b) {
  Roof out = a;
  if (!a.noise.empty() && b.read_gbps > 0) out.noise = b.noise;
  out.read_gbps = std::max(a.read_gbps, b.read_gbps);
  for (MacRate& rate : out.rates) rate.gmacs = std::max(rate.gmacs, b.gmacs(rate.isa, rate.type));
  return out;
}

double spread_of(const Roof& a, const Roof& b) {
  const auto differ = [](double x, double y) {
    return x > 0 && y > 0 ? std::fabs(x - y) / std::max(x, y) : 0.0;
  };
  double spread = differ(a.read_gbps, b.read_gbps);
  for (const MacRate& rate : a.rates)
    spread = std::max(spread, differ(rate.gmacs, b.gmacs(rate.isa, rate.type)));
  return spread;
}

Status check_gpu(const Machine& machine) {
  const auto finding = examine_gpu(machine, built_with_cuda());
  return finding ? error(Code::unavailable, "{}: {}", finding->what, finding->remedy) : Status();
}

Result<std::unique_ptr<Target>> make_target(std::string_view device, const Machine& machine,
                                            int n_lanes) {
  if (device == "cpu") return cpu_target(machine, n_lanes);
  if (device == "cuda") {
    MILLRACE_TRY(check_gpu(machine));
    return cuda_target(machine);
  }
  return error(Code::not_found, "no device {}: cpu or cuda", device);
}

}  // namespace millrace::lab
