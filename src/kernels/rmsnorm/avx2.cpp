#include <immintrin.h>

#include <cmath>

#include "base/isa.h"
#include "kernels/lanes_avx2.h"
#include "kernels/rmsnorm/groups.h"
#include "kernels/rmsnorm/op.h"

MILLRACE_TARGET_AVX2
namespace millrace::rmsnorm::avx2 {

using namespace lanes::avx2;

#include "kernels/rmsnorm/body.inc"

}  // namespace millrace::rmsnorm::avx2
MILLRACE_TARGET_END
