// What device files share: element conversion and the two halves of overlapping a kernel with its
// predecessor in the stream.
#pragma once

#include <cuda_fp16.h>

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

__device__ __forceinline__ float widen_bf16(unsigned bits) {
  return __uint_as_float(bits << 16);
}
__device__ __forceinline__ float widen_f16(unsigned short bits) {
  return __half2float(__ushort_as_half(bits));
}
__device__ __forceinline__ unsigned short f16_bits(float value) {
  return __half_as_ushort(__float2half_rn(value));
}

// Two f32 as bf16 side by side: the rounding of bf16_bits, but for the payload of a NaN.
__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
  unsigned out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}

// kEach neighbouring elements from i on, 8 (16-byte aligned) or 1. Widening is exact; rounding is
// to nearest even, once.
template <int kEach>
__device__ __forceinline__ void load_several(float (&f)[kEach], const void* x, DType type,
                                             long long i) {
  if constexpr (kEach == 1) {
    if (type == DType::f32) {
      f[0] = static_cast<const float*>(x)[i];
    } else {
      const unsigned short bits = static_cast<const unsigned short*>(x)[i];
      f[0] = type == DType::bf16 ? widen_bf16(bits) : widen_f16(bits);
    }
  } else if (type == DType::f32) {
    const auto* from = reinterpret_cast<const float4*>(static_cast<const float*>(x) + i);
    const float4 low = from[0], high = from[1];
    f[0] = low.x, f[1] = low.y, f[2] = low.z, f[3] = low.w;
    f[4] = high.x, f[5] = high.y, f[6] = high.z, f[7] = high.w;
  } else {
    const uint4 raw = *reinterpret_cast<const uint4*>(static_cast<const unsigned short*>(x) + i);
    const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const unsigned bits = words[j / 2] >> (j % 2 * 16) & 0xffffu;
      f[j] = type == DType::bf16 ? widen_bf16(bits) : widen_f16(static_cast<unsigned short>(bits));
    }
  }
}

__device__ __forceinline__ unsigned small_bits(float value, DType type) {
  return type == DType::bf16 ? bf16_bits(value) : f16_bits(value);
}

template <int kEach>
__device__ __forceinline__ void store_several(void* y, DType type, long long i,
                                              const float (&f)[kEach]) {
  if constexpr (kEach == 1) {
    if (type == DType::f32)
      static_cast<float*>(y)[i] = f[0];
    else
      static_cast<unsigned short*>(y)[i] = static_cast<unsigned short>(small_bits(f[0], type));
  } else if (type == DType::f32) {
    auto* to = reinterpret_cast<float4*>(static_cast<float*>(y) + i);
    to[0] = make_float4(f[0], f[1], f[2], f[3]);
    to[1] = make_float4(f[4], f[5], f[6], f[7]);
  } else {
    unsigned words[4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      words[j] = small_bits(f[2 * j], type) | small_bits(f[2 * j + 1], type) << 16;
    *reinterpret_cast<uint4*>(static_cast<unsigned short*>(y) + i) =
        make_uint4(words[0], words[1], words[2], words[3]);
  }
}

// Whether 16-byte accesses may start at each of these addresses.
template <class... Pointers>
bool are_aligned(Pointers... pointers) {
  return ((reinterpret_cast<unsigned long long>(pointers) % 16 == 0) && ...);
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

// What launchers ask of the current device.
struct DeviceSize {
  int n_sms = 0;
  int shared_bytes = 0;  // that a block may have at most
};

inline cudaError_t ask_device(DeviceSize& size) {
  int device = 0;
  if (cudaError_t e = cudaGetDevice(&device); e != cudaSuccess) return e;
  if (cudaError_t e = cudaDeviceGetAttribute(&size.n_sms, cudaDevAttrMultiProcessorCount, device);
      e != cudaSuccess)
    return e;
  return cudaDeviceGetAttribute(&size.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                device);
}

struct LaunchShape {
  dim3 grid;
  unsigned n_threads;
  size_t shared_bytes;
  // All of L1 as shared memory. A multiprocessor changes that division only when it is empty, so
  // kernels that are to overlap must ask for the same; what loads much into registers needs L1 for
  // what is in flight.
  bool all_shared = false;
  unsigned cluster = 1;  // blocks that exchange through each other's shared memory, since sm_90
};

// Whether a kernel's code is for sm_90 or later: older code that the driver compiled for Hopper has
// neither the wait of an overlapped launch nor clusters in it.
template <class... Params>
int is_hopper_code(void (*kernel)(Params...), bool* yes) {
  cudaFuncAttributes code = {};
  const cudaError_t e = cudaFuncGetAttributes(&code, kernel);
  *yes = e == cudaSuccess && code.ptxVersion >= 90;
  return e;
}

// Launches a kernel that may overlap the tail of its predecessor; returns a cudaError_t. Code for
// an older architecture may not, since it has no wait in it.
template <class... Params, class... Values>
int overlapped_launch(void (*kernel)(Params...), const LaunchShape& shape, void* stream,
                      Values... values) {
  bool hopper = false;
  if (int e = is_hopper_code(kernel, &hopper); e != cudaSuccess) return e;
  // One division of L1 and shared memory for all: a multiprocessor changes it only when it is
  // empty, so kernels that ask for different ones cannot overlap.
  if (cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                           cudaSharedmemCarveoutMaxShared);
      e != cudaSuccess)
    return e;
  cudaLaunchAttribute wanted[2] = {};
  wanted[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  wanted[0].val.programmaticStreamSerializationAllowed = 1;
  wanted[1].id = cudaLaunchAttributeClusterDimension;
  wanted[1].val.clusterDim.x = shape.cluster;
  wanted[1].val.clusterDim.y = wanted[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = dim3(shape.n_threads);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = wanted;
  config.numAttrs = !hopper ? 0 : shape.cluster > 1 ? 2 : 1;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Params>(values)...);
}

}  // namespace millrace
