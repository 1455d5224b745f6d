// What device files share: element conversion and the two halves of overlapping a kernel with its
// predecessor in the stream.
#pragma once

#include "tensor/dtype.h"

namespace millrace {

// f32 to bf16 bits, to nearest even, NaN kept: the same rule as base/small_float.h.
__device__ __forceinline__ unsigned short bf16_bits(float value) {
  const unsigned bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<unsigned short>((bits >> 16) | 0x40);
  return static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

__device__ __forceinline__ float load_element(const void* x, bool is_bf16, long long i) {
  if (is_bf16)
    return __uint_as_float(static_cast<unsigned>(static_cast<const unsigned short*>(x)[i]) << 16);
  return static_cast<const float*>(x)[i];
}

__device__ __forceinline__ void store_element(void* y, bool is_bf16, long long i, float value) {
  if (is_bf16)
    static_cast<unsigned short*>(y)[i] = bf16_bits(value);
  else
    static_cast<float*>(y)[i] = value;
}

// On Hopper a kernel launched with overlapped_launch() may start while its predecessor runs:
// whatever it does before wait_for_previous_kernel() must not touch what that one writes.
__device__ __forceinline__ void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

struct LaunchShape {
  dim3 grid;
  unsigned n_threads;
  size_t shared_bytes;
};

// Launches a kernel that may overlap the tail of its predecessor; returns a cudaError_t.
template <class... Params, class... Values>
int overlapped_launch(void (*kernel)(Params...), const LaunchShape& shape, void* stream,
                      Values... values) {
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = dim3(shape.n_threads);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &overlap;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Params>(values)...);
}

}  // namespace millrace
