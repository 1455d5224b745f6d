#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "base/isa.h"
#include "base/math_avx2.h"
#include "kernels/lanes_avx2.h"
#include "kernels/softmax/op.h"

MILLRACE_TARGET_AVX2
namespace millrace::softmax::avx2 {

using namespace lanes::avx2;
namespace one = math::avx2;

#include "kernels/softmax/body.inc"

}  // namespace millrace::softmax::avx2
MILLRACE_TARGET_END
