// Matrix product with weights in f32, f16, bf16 or a block format.
//
// Class cpu.matmul.i8b32 (block formats, x in q8_row). Every output is one f32 FMA chain over the
// blocks of 32 in ascending k, from +0:
//   acc = fma(dw * dx, float(idot), acc)                 all formats
//   acc = fma(mw, dx * float(xsum), acc)                 then, where the format has a minimum
// idot is the exact int32 dot of the block's integers (Q4_0: q - 8, Q5_0: q - 16, Q4_1, Q5_1, Q4_K,
// Q5_K: q unsigned; Q8_0: q; IQ4: the table's value; Q6_K, Q3_K: sum over the two halves of scale *
// dot, Q2_K likewise); dx, xsum are the activation block's scale and sum; dw * dx and dx *
// float(xsum) round once.
//   Q8_0 Q4_0 Q5_0 IQ4_NL: dw = d.  Q4_1 Q5_1: dw = d, mw = m.  Q4_K Q5_K: dw = d * sc, mw = -(dmin
//   * m). Q6_K Q3_K: dw = d.  IQ4_XS: dw = d * (ls - 32). Q2_K: dw = d; the minimum part is
//   fma(-dmin, dx * float(sum over halves of m * xsum_half), acc).
// Class cpu.matmul.f32 (f32, f16, bf16 weights, x in f32): acc = fma(x[i], w[i], acc) in ascending
// i.
// Class cuda.matmul.bf16 (x in bf16): the order of tile.cuh. Block formats are the codec's f32
// value rounded once to bf16: by definition, also of the reference, where x is bf16. The CPU's: a
// NaN result is stored as 0x7fc00000, since its payload would otherwise depend on the order of an
// instruction's operands; y in bf16 is that f32 rounded once. Lanes split outputs, never k.
#pragma once

#include <span>

#include "kernels/kernel.h"
#include "kernels/matmul/args.h"

namespace millrace::matmul {

inline constexpr std::string_view kI8B32 = "cpu.matmul.i8b32";
inline constexpr std::string_view kF32 = "cpu.matmul.f32";
inline constexpr std::string_view kBf16Cuda = "cuda.matmul.bf16";  // the order of tile.cuh

extern const Op kOp;

Status validate(const Args& args);
// Block formats are multiplied with int8 rows, floats with f32; a GPU takes bf16 beside everything.
DType input_type(DType weight, bool on_cuda);
// The type that a GPU keeps a matrix of a file in: its own where products read it packed.
DType device_weight_type(DType file);
std::span<const Variant> variants();

// run: the 32-element block formats in layout tiles16. run_kquants: Q4_K, Q5_K, Q6_K, IQ4_XS in
// tiles16_k.
// run_floats: f32, f16, bf16 in tiles16_f.
namespace avx512_vnni {
size_t workspace_bytes(const Args& args, int n_lanes);
size_t workspace_bytes_kquants(const Args& args, int n_lanes);
Status run(const Args& args, Exec& exec);
Status run_kquants(const Args& args, Exec& exec);
}  // namespace avx512_vnni
namespace avx512 {
Status run_floats(const Args& args, Exec& exec);
}
namespace avx2 {
size_t workspace_bytes(const Args& args, int n_lanes);
size_t workspace_bytes_kquants(const Args& args, int n_lanes);
Status run(const Args& args, Exec& exec);
Status run_kquants(const Args& args, Exec& exec);
Status run_floats(const Args& args, Exec& exec);
}  // namespace avx2
// The class i8b32 as plain loops over the file's blocks: every block format, bit for bit; its
// witness.
namespace scalar {
bool takes(const Args& args);
Status run(const Args& args, Exec& exec);
}  // namespace scalar
// The class f32 as plain loops: its witness.
namespace plain {
bool takes(const Args& args);
Status run(const Args& args, Exec& exec);
}  // namespace plain
namespace reference {
Status run(const Args& args, Exec& exec);
// The sum of |w x|, one per element of y, a weight's product and its minimum taken apart: they may
// cancel, their roundings do not. What the error of a chain is relative to.
void magnitudes(const Args& args, std::span<double> out);
// How much a chain of any class is off before the last rounding, relative to that sum. A block of
// 32 is two FMAs of the chain (one for the minimum), a float one; a tensor core's step of 16 may be
// off by as much as 16 of them. Eight more for roundings of the terms themselves and of the
// reference's f32 weights.
double chain_error(long long k, DType x_type);
}  // namespace reference

}  // namespace millrace::matmul
