// Where bench measures: a Target is a device (this CPU with a number of lanes, a GPU), a Rig is one
// case mounted on it with some variants, verified and ready to be timed. The rounds, the statistics
// and the reports above know no device.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kernels/case.h"
#include "lab/ring_check.h"
#include "machine/ceilings.h"
#include "machine/machine.h"
#include "machine/nvml.h"

namespace millrace::lab {

// A multiply-add ceiling: what the best loop of an instruction set reaches for one element type.
struct MacRate {
  Isa isa = Isa::generic;
  std::string_view type;  // "i8", "f32", "bf16"
  double gmacs = 0;       // 1e9 multiply-adds a second, with the target's lanes
};

// The machine's measured ceilings, as far as a floor needs them.
struct Roof {
  double read_gbps = 0;  // with the target's lanes
  std::string noise;     // why the machine was not quiet; empty when it was
  std::vector<MacRate> rates;

  double best_gmacs(std::string_view type) const;      // 0 when not measured
  double gmacs(Isa isa, std::string_view type) const;  // of one ISA; 0 when not measured
};

Roof roof_of(const Ceilings& ceilings);  // of all its lanes

// The larger of the two, ceiling by ceiling: interference can only lower one.
Roof max_of(const Roof& a, const Roof& b);
// The largest relative difference between ceilings that both have.
double spread_of(const Roof& a, const Roof& b);

struct MountInfo {
  size_t n_entries = 0;   // distinct instances that a cold pass goes round
  double cold_bytes = 0;  // what that pass reads
  Checked checked;
};

class Rig {
 public:
  virtual ~Rig() = default;
  virtual const MountInfo& info() const = 0;
  // One sample of a variant (by its place in the mounted list): microseconds a call. Before it, one
  // entry at least gets the content of another, outputs get poison, and at every other sample,
  // drawn at random, the workspace does; after it, outputs must hold the bits verified for what lay
  // in their entries.
  virtual Result<double> time_us(size_t variant, std::string_view mode) = 0;
  // The processors' clock during the last sample, as the device itself counts; 0: not known.
  virtual double sm_mhz() const { return 0; }
};

struct MountOptions {
  double sample_seconds = 0.01;  // about how long one sample should last
  uint64_t seed = 1;
};

class Target {
 public:
  virtual ~Target() = default;
  virtual std::string_view device() const = 0;  // "cpu" or "cuda"
  virtual int n_lanes() const = 0;              // 1 where the word means nothing
  // What "cold" and "warm" rows it times, cold first.
  virtual std::span<const std::string_view> modes() const = 0;
  virtual bool has(const Variant& variant) const = 0;
  // Bytes that its last-level cache holds: a warm row of a larger case reads memory all the same.
  virtual size_t cache_bytes() const = 0;

  virtual Result<Roof> measure_roof(Effort effort) = 0;
  // What the ceilings that bound such a case are at this moment, to pair with samples taken next to
  // it. Null where a target's ceilings do not move.
  virtual std::optional<Roof> probe_roof(const Floor& /*of*/) { return std::nullopt; }
  // What the device draws and what holds its clocks back, at the end of a round. Null where nobody
  // tells.
  virtual std::optional<GpuLoad> load() { return std::nullopt; }
  // Builds what the case needs, runs every variant over it and verifies the results. How much of
  // them is compared follows from the case alone (lab/ring_check.h).
  virtual Result<std::unique_ptr<Rig>> mount(const Op& op, const Case& problem,
                                             std::span<const Variant* const> variants,
                                             const MountOptions& options) = 0;
};

// Whether device code runs here; if not, why, in the doctor's words.
Status check_gpu(const Machine& machine);

// n_lanes: 0 for as many as this machine has CPUs.
Result<std::unique_ptr<Target>> make_target(std::string_view device, const Machine& machine,
                                            int n_lanes);
std::unique_ptr<Target> cpu_target(const Machine& machine, int n_lanes);
Result<std::unique_ptr<Target>> cuda_target(const Machine& machine);

inline bool is_cold(std::string_view mode) {
  return mode.starts_with("cold");
}

}  // namespace millrace::lab
