#include <immintrin.h>

#include "base/isa.h"
#include "base/math_avx512.h"
#include "kernels/lanes_avx512.h"
#include "kernels/runs.h"
#include "kernels/silu_mul/op.h"

#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

MILLRACE_TARGET_AVX512
namespace millrace::silu_mul::avx512 {

using namespace lanes::avx512;
namespace one = math::avx512;

#include "kernels/silu_mul/body.inc"

}  // namespace millrace::silu_mul::avx512
MILLRACE_TARGET_END
