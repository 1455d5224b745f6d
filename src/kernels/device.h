// Device launchers behind the contract: a launcher returns a cudaError_t as int, and
// `.run = erase_launch<Args, launch>` makes a Status of it.
#pragma once

#include "kernels/kernel.h"
#include "memory/device.h"

namespace millrace {

template <class Args, int (*Launch)(const Args&, void* stream, void* workspace)>
Status erase_launch(const void* args, Exec& exec) {
  return cuda_status(Launch(*static_cast<const Args*>(args), exec.stream, exec.workspace),
                     "launch");
}

}  // namespace millrace
