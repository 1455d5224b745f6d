// Gather rows of an embedding table as f32. Numerics: class cpu.embedding.exact; a row is what
// decode() of tensor/codec.h gives, times the scale in one correctly rounded f32 product where that
// is not 1, so there is one right answer (NaN for NaN). An id outside
// [0, n_vocab) gives a row of +0: ids are data, a batch is padded with -1, and a kernel cannot
// fail; whoever takes ids from outside checks them first.
#pragma once

#include <span>

#include "kernels/embedding/args.h"
#include "kernels/kernel.h"

namespace millrace::embedding {

extern const Op kOp;

Status validate(const Args& args);
std::span<const Variant> variants();

namespace reference {
Status run(const Args& args, Exec& exec);
}
namespace avx2 {
Status run(const Args& args, Exec& exec);
}

}  // namespace millrace::embedding
