#include <immintrin.h>

#include "base/isa.h"
#include "kernels/add/op.h"
#include "kernels/add/runs.h"
#include "kernels/lanes_avx2.h"

MILLRACE_TARGET_AVX2
namespace millrace::add::avx2 {

using namespace lanes::avx2;

#include "kernels/add/body.inc"

}  // namespace millrace::add::avx2
MILLRACE_TARGET_END
