// Device pieces of the bf16 product, without a launch: the tensor-core step of the canonical order
// and the packed weight's addressing. Class cuda.matmul.bf16: outputs are the M operand (tiles of
// 16), rows of x the N operand, k16 steps in ascending k, f32 accumulators; k is cut into segments
// of kSegment, each started from zero, and the segments' sums are added in ascending order starting
// from the first.
#pragma once

namespace millrace::matmul {

inline constexpr int kTileM = 16;     // outputs of one tensor-core tile
inline constexpr int kStepK = 16;     // k of one tensor-core step
inline constexpr int kSegment = 128;  // k of one accumulator chain
inline constexpr int kStepsPerSegment = kSegment / kStepK;
inline constexpr int kStepBytes = 512;  // of one packed 16 x 16 bf16 tile: 32 threads x 16 bytes

#ifdef __CUDACC__

// c += a * b for one m16n8k16 step; a: 16 x 16 weights as packed, b: 16 x 8 of x.
__device__ __forceinline__ void mma_step(float (&c)[4], const uint4& a, unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

#endif

}  // namespace millrace::matmul
