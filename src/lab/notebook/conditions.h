// What a measurement depends on besides the kernel's name: hardware, driver, toolkit, source. What
// was learned under some conditions is stale under others.
#pragma once

#include <string>

#include "lab/store.h"
#include "machine/machine.h"

namespace millrace::lab {

struct Conditions {
  std::string hardware;
  std::string driver;   // CUDA's, of a run on a GPU
  std::string toolkit;  // compiler, and nvcc of a run on a GPU
  std::string source;   // digest of the op's source, or of the whole engine's

  bool operator==(const Conditions&) const = default;
};

// Of a stored run, for what `kind` and `name` tell (an op's source, or all of it). Parts that the
// record does not tell are empty.
Conditions conditions_of(const RunRecord& run, const std::string& kind, const std::string& name);

// As they are now, for this machine and this build, on the device of such a run.
Conditions conditions_now(const Machine& machine, const std::string& device,
                          const std::string& kind, const std::string& name);

// "driver was 13000, is 13010; source changed"; empty when nothing did. A part that was not
// recorded cannot tell and says so.
std::string why_stale(const Conditions& then, const Conditions& now);

}  // namespace millrace::lab
