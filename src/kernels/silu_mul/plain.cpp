// The witness: the class of op.h as a plain loop.
#include "base/math.h"
#include "kernels/gated_plain.h"
#include "kernels/silu_mul/op.h"

namespace millrace::silu_mul::plain {

Status run(const Args& a, Exec& exec) {
  return run_gated_plain<math::silu>(a, exec);
}

}  // namespace millrace::silu_mul::plain
