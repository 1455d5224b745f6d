// base/philox.h for device code: the same text, so the same draws.
#pragma once

namespace millrace {
namespace cuda {

#define MILLRACE_PHILOX_INLINE __device__ __forceinline__
#include "base/philox_body.inc"

}  // namespace cuda
}  // namespace millrace
