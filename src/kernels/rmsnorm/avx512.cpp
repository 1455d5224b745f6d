#include <immintrin.h>

#include <cmath>

#include "base/isa.h"
#include "kernels/lanes_avx512.h"
#include "kernels/rmsnorm/groups.h"
#include "kernels/rmsnorm/op.h"

#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

MILLRACE_TARGET_AVX512
namespace millrace::rmsnorm::avx512 {

using namespace lanes::avx512;

#include "kernels/rmsnorm/body.inc"

}  // namespace millrace::rmsnorm::avx512
MILLRACE_TARGET_END
