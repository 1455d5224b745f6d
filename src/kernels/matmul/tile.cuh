// Device pieces of the bf16 product, without a launch: the tensor-core step of the canonical order
// and the packed weight's addressing. Class cuda.matmul.bf16: outputs are the M operand (tiles of
// 16), rows of x the N operand, k16 steps in ascending k, f32 accumulators; k is cut into segments
// of kSegment, each started from zero, and the segments' sums are added in ascending order starting
// from the first. Weights of 8 and 4 bits are the codec's f32 value rounded once to bf16, and then
// the same (device_weights.cuh).
#pragma once

namespace millrace::matmul {

inline constexpr int kTileM = 16;     // outputs of one tensor-core tile
inline constexpr int kStepK = 16;     // k of one tensor-core step
inline constexpr int kSegment = 128;  // k of one accumulator chain
inline constexpr int kStepsPerSegment = kSegment / kStepK;
inline constexpr int kStepBytes = 512;  // of one packed 16 x 16 bf16 tile: 32 threads x 16 bytes

// A tile's blocks of 32 k in 8 and 4 bits: the quants of every lane, then the f16 scales of outputs
// 0, 8, 1, 9, ...
inline constexpr int kBlockK = 32;
inline constexpr int kBlockSteps = kBlockK / kStepK;
inline constexpr int kScaleBytes = 2 * kTileM;
inline constexpr int kQ8Quants = kTileM * kBlockK, kQ8Bytes = kQ8Quants + kScaleBytes;
inline constexpr int kQ4Quants = kQ8Quants / 2, kQ4Bytes = kQ4Quants + kScaleBytes;

// A tile's blocks of 256 k, which are two segments: what belongs to the first, what both share, and
// what belongs to the second, so that a segment with what it shares is one run of bytes.
inline constexpr int kSuperK = 2 * kSegment;
struct SuperTile {
  int low, high, scales,
      shared;  // bytes of a segment's quants (4 low bits, 2 high ones), its scales
  constexpr int own() const { return low + high + scales; }
  constexpr int run() const { return own() + shared; }
  constexpr int bytes() const { return own() + run(); }
  // Where the parts of a run begin, the second segment's or the first's.
  constexpr int shared_at(bool second) const { return second ? 0 : own(); }
  constexpr int scales_at(bool second) const { return second ? shared : low + high; }
  constexpr int low_at(bool second) const { return second ? shared + scales : 0; }
  constexpr int high_at(bool second) const { return low_at(second) + low; }
};
// Q4_K: of four groups 12 bits an output (scale, minimum); f16 d and dmin are shared.
inline constexpr SuperTile kQ4KTile = {kTileM * kSegment / 2, 0, kTileM * 6, kTileM * 4};
// Q6_K: of eight steps 8 bits; f16 d.
inline constexpr SuperTile kQ6KTile = {kTileM * kSegment / 2, kTileM* kSegment / 4, kTileM * 8,
                                       kTileM * 2};

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
