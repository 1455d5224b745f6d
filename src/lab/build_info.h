// What this program was built from and with, for the records of a run.
#pragma once

#include <string>

namespace millrace::lab {

struct BuildInfo {
  std::string commit;  // "-modified" at its end when the tree had changes; "unknown" without git
  std::string compiler;
  std::string flags;
};

BuildInfo build_info();
std::string to_json(const BuildInfo& build);

}  // namespace millrace::lab
