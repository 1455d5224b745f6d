// What this program was built from and with, for the records of a run.
#pragma once

#include <map>
#include <string>

namespace millrace::lab {

struct BuildInfo {
  std::string commit;  // "-modified" at its end when the tree had changes; "unknown" without git
  std::string compiler;
  std::string flags;
  std::string cuda;  // nvcc's version; empty in a build without device code
  // A digest of each op's source, shared files included; under "" that of the whole engine.
  std::map<std::string, std::string> sources;
};

BuildInfo build_info();
std::string to_json(const BuildInfo& build);

}  // namespace millrace::lab
