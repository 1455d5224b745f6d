// What is wrong with a machine for this work, and what to do about it: judged from what was found
// and measured, changing nothing. `millrace doctor` prints it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/ceilings.h"
#include "machine/machine.h"

namespace millrace {

enum class Severity {
  note,      // worth knowing
  warning,   // costs speed, or makes numbers doubtful
  unusable,  // nothing sensible runs here
};

std::string_view name_of(Severity severity);

struct Finding {
  Severity severity = Severity::note;
  std::string what;
  std::string remedy;
};

// Why device code does not run here; nothing where it does.
std::optional<Finding> examine_gpu(const Machine& machine, bool cuda_build);

// The gravest first.
std::vector<Finding> examine(const Machine& machine, const Ceilings& ceilings, bool cuda_build);

}  // namespace millrace
