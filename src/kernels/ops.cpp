#include <array>

#include "kernels/add/op.h"
#include "kernels/argmax/op.h"
#include "kernels/attention/op.h"
#include "kernels/embedding/op.h"
#include "kernels/expert_matmul/op.h"
#include "kernels/expert_sum/op.h"
#include "kernels/gelu_mul/op.h"
#include "kernels/kernel.h"
#include "kernels/kv_store/op.h"
#include "kernels/matmul/op.h"
#include "kernels/quantize/op.h"
#include "kernels/rmsnorm/op.h"
#include "kernels/rope/op.h"
#include "kernels/sample/op.h"
#include "kernels/silu_mul/op.h"
#include "kernels/softmax/op.h"
#include "kernels/topk/op.h"

namespace millrace {

std::span<const Op* const> ops() {
  static constexpr std::array kOps = {
      // One a line, so that two changes that each add one merge.
      &add::kOp,            //
      &argmax::kOp,         //
      &attention::kOp,      //
      &embedding::kOp,      //
      &expert_matmul::kOp,  //
      &expert_sum::kOp,     //
      &gelu_mul::kOp,       //
      &kv_store::kOp,       //
      &matmul::kOp,         //
      &quantize::kOp,       //
      &rmsnorm::kOp,        //
      &rope::kOp,           //
      &sample::kOp,         //
      &silu_mul::kOp,       //
      &softmax::kOp,        //
      &topk::kOp,           //
  };
  return kOps;
}

}  // namespace millrace
