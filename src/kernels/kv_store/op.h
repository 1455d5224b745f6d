// Storing K and V of new tokens in the paged cache. Class cpu.kv_store.round: each element is
// rounded to nearest even once (the hardware's F16C and the bits of base/small_float.h agree; NaN
// becomes a quiet NaN with the upper payload bits; f32 is copied), and nothing else happens to it.
// Lanes split columns: heads and dimensions.
#pragma once

#include <span>

#include "kernels/kernel.h"
#include "kernels/kv_store/args.h"

namespace millrace::kv_store {

inline constexpr std::string_view kRound = "cpu.kv_store.round";

extern const Op kOp;

Status validate(const Args& args);
std::span<const Variant> variants();

namespace reference {
Status run(const Args& args, Exec& exec);
}
namespace avx2 {
Status run(const Args& args, Exec& exec);
}

}  // namespace millrace::kv_store
