// Who decides that a variant's bits are right. A tolerance leaves room for work that was not done,
// so equal bits decide wherever somebody else can compute them: the reference where a case is
// exact, else the op's witness of the class, else another variant of it. The tolerance then only
// catches a witness that is wrong itself.
//
// Classes without a witness: cuda.matmul.bf16 and cuda.attention.mma256, since what a tensor core
// does inside a step is not written down (the first has variants that witness each other, for block
// formats one whose weights were dequantised at load);
// cuda.attention.chunk256.
#pragma once

#include <functional>
#include <span>

#include "kernels/case.h"

namespace millrace::lab {

std::span<const Variant> witnesses_of(const Op& op);

// Null where the class has none that takes the case.
const Variant* witness_for(const Op& op, const Case& problem, const Variant& variant);

// Where it has none: another variant of the class that the device has and that takes the case, the
// last in the table, which is the plainest. Null: the tolerance alone decides.
const Variant* peer_for(const Op& op, const Case& problem, const Variant& variant,
                        const std::function<bool(const Variant&)>& has);

}  // namespace millrace::lab
