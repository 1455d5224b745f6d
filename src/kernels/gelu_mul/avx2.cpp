#include <immintrin.h>

#include "base/isa.h"
#include "base/math_avx2.h"
#include "kernels/gelu_mul/op.h"
#include "kernels/lanes_avx2.h"
#include "kernels/runs.h"

MILLRACE_TARGET_AVX2
namespace millrace::gelu_mul::avx2 {

using namespace lanes::avx2;
namespace one = math::avx2;

#include "kernels/gelu_mul/body.inc"

}  // namespace millrace::gelu_mul::avx2
MILLRACE_TARGET_END
