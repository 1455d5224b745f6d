// Where an instance's call is executed: on a team of CPU lanes, or on a device that mirrors the
// instance's buffers. The checks and the selftest are written against this and know no device; the
// reference always runs on the host.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "kernels/fusion.h"
#include "kernels/kernel.h"
#include "lab/instance.h"
#include "machine/machine.h"

namespace millrace::lab {

class Runner {
 public:
  virtual ~Runner() = default;

  virtual std::string_view device() const = 0;  // "cpu" or "cuda"
  // Whether the variant belongs to this kind of device at all, and whether this one can execute it.
  virtual bool owns(const Variant& variant) const = 0;
  virtual bool has(const Variant& variant) const = 0;
  // The lane counts promise 1 is tried with; a device whose launch has no such knob says {1}.
  virtual std::span<const int> lane_counts() const = 0;

  // Runs the variant once on the instance with n_lanes lanes; when it returns, the outputs are in
  // the instance's host buffers. A device runner also checks its own guards around the buffers.
  virtual Status run(Instance& instance, const Variant& variant, int n_lanes) = 0;

  // Whether a fused call gives the bits of the plain calls it equals; false: it does not take the
  // case, as none does where nothing is fused.
  virtual Result<bool> check_fused(const Fusion&, const FusedCase&, uint64_t) { return false; }
};

// Keeps one team per lane count it was asked for.
std::unique_ptr<Runner> cpu_runner(const Machine& machine);
Result<std::unique_ptr<Runner>> cuda_runner(const Machine& machine);

// The runner of the device named "cpu" or "cuda", or why there is none.
Result<std::unique_ptr<Runner>> make_runner(std::string_view device, const Machine& machine);

}  // namespace millrace::lab
