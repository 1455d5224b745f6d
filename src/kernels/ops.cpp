#include <array>

#include "kernels/kernel.h"
#include "kernels/matmul/op.h"
#include "kernels/rmsnorm/op.h"
#include "kernels/topk/op.h"

namespace millrace {

std::span<const Op* const> ops() {
  static constexpr std::array kOps = {
      &matmul::kOp,
      &rmsnorm::kOp,
      &topk::kOp,
  };
  return kOps;
}

}  // namespace millrace
