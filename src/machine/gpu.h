// The CUDA devices of this host as its driver tells them. The driver's library is opened at run
// time, so this needs neither the CUDA toolkit to build nor a driver to start.
#pragma once

#include <string>
#include <vector>

#include "machine/host_files.h"
#include "machine/machine.h"

namespace millrace {

struct GpuSearch {
  std::vector<Gpu> gpus;
  int cuda_driver = 0;
  std::string problem;  // why `gpus` is empty and what to do; empty when it is not
};

GpuSearch find_gpus(const HostFiles& host);

}  // namespace millrace
