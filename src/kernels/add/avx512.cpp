#include <immintrin.h>

#include "base/isa.h"
#include "kernels/add/op.h"
#include "kernels/add/runs.h"
#include "kernels/lanes_avx512.h"

#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12's AVX-512 headers trip it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

MILLRACE_TARGET_AVX512
namespace millrace::add::avx512 {

using namespace lanes::avx512;

#include "kernels/add/body.inc"

}  // namespace millrace::add::avx512
MILLRACE_TARGET_END
