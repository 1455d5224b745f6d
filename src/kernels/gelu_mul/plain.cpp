// The witness: the class of op.h as a plain loop.
#include "base/math.h"
#include "kernels/gated_plain.h"
#include "kernels/gelu_mul/op.h"

namespace millrace::gelu_mul::plain {

Status run(const Args& a, Exec& exec) {
  return run_gated_plain<math::gelu>(a, exec);
}

}  // namespace millrace::gelu_mul::plain
