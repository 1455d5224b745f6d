// Class cuda.gelu_mul.f32: gelu by the polynomial of base/math.h and one correctly rounded f32
// product, rounded once more where y is bf16.
#include "base/math_cuda.cuh"
#include "kernels/gated.cuh"
#include "kernels/gelu_mul/args.h"
#include "kernels/gelu_mul/device.h"

namespace millrace::gelu_mul {
namespace {

struct Activation {
  static __device__ __forceinline__ float of(float x) { return math::cuda::gelu(x); }
};

}  // namespace

int launch_sm80(const Args& a, void* stream, void*) {
  return launch_gated<Activation>(a, stream);
}

}  // namespace millrace::gelu_mul
