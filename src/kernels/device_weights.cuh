// Packed weights of a product on a device, as its warps read them: layout mma16 of matmul
// (pack_mma.h). A format says how many bytes a tile of 16 outputs and its k segments of 128 take,
// and makes tensor-core operands of them. A segment's bytes lie side by side, so all kernels fetch
// them in the same way; it is read in parts of 32 k, two steps. What 8 and 4 bits become is the
// codec's f32 value rounded once to bf16, so a product has the bits of weights that were
// dequantised at load.
#pragma once

#include "kernels/device.cuh"
#include "kernels/matmul/tile.cuh"
#include "tensor/dtype.h"

namespace millrace::device_weights {

using matmul::kBlockSteps;
using matmul::kStepBytes;
using matmul::kStepsPerSegment;

inline constexpr int kParts = kStepsPerSegment / kBlockSteps;  // of a segment

// Where a part is read from. Shared memory has room for whole segments, and what is read of it past
// the last step is not used.
struct FromShared {
  static constexpr bool kIsWhole = true;
  template <class T>
  static __device__ __forceinline__ T at(const unsigned char* p) {
    return *reinterpret_cast<const T*>(p);
  }
};
struct FromGlobal {  // once
  static constexpr bool kIsWhole = false;
  template <class T>
  static __device__ __forceinline__ T at(const unsigned char* p) {
    return __ldcs(reinterpret_cast<const T*>(p));
  }
};

struct Bf16 {
  static constexpr DType kType = DType::bf16;
  static constexpr bool kIsPacked = false;
  static constexpr int kSegmentBytes = kStepsPerSegment * kStepBytes;
  struct Part {
    uint4 step[kBlockSteps];
  };

  static __host__ __device__ __forceinline__ long long tile_bytes(int n_steps) {
    return static_cast<long long>(n_steps) * kStepBytes;
  }
  static __device__ __forceinline__ long long segment_at(int segment) {
    return static_cast<long long>(segment) * kSegmentBytes;
  }
  static __device__ __forceinline__ int segment_bytes(int live) { return live * kStepBytes; }
  // Part j of a segment of `live` steps, whose bytes begin at `bytes`; what is not live is left as
  // it is.
  template <class From>
  static __device__ __forceinline__ void load(Part& part, const unsigned char* bytes, int, int j,
                                              int live) {
    const unsigned char* at = bytes + j * kBlockSteps * kStepBytes + (threadIdx.x & 31) * 16;
#pragma unroll
    for (int s = 0; s < kBlockSteps; ++s)
      if (From::kIsWhole || j * kBlockSteps + s < live)
        part.step[s] = From::template at<uint4>(at + s * kStepBytes);
  }
  static __device__ __forceinline__ void widen(uint4 (&out)[kBlockSteps], const Part& part) {
#pragma unroll
    for (int s = 0; s < kBlockSteps; ++s) out[s] = part.step[s];
  }
};

// What formats of 32-element blocks share; Quants: of a lane.
template <class QuantsOfLane, int kQuantBytes>
struct Blocks {
  static constexpr bool kIsPacked = true;
  static constexpr int kBytes = kQuantBytes + matmul::kScaleBytes;
  static constexpr int kSegmentBytes = kParts * kBytes;
  static_assert(kQuantBytes == 32 * sizeof(QuantsOfLane) && kBytes % 16 == 0);
  struct Part {
    QuantsOfLane q;
    unsigned d;  // f16 of rows g and g + 8
  };

  static __host__ __device__ __forceinline__ long long tile_bytes(int n_steps) {
    return static_cast<long long>(n_steps) / kBlockSteps * kBytes;
  }
  static __device__ __forceinline__ long long segment_at(int segment) {
    return static_cast<long long>(segment) * kSegmentBytes;
  }
  static __device__ __forceinline__ int segment_bytes(int live) {
    return live / kBlockSteps * kBytes;
  }
  template <class From>
  static __device__ __forceinline__ void load(Part& part, const unsigned char* bytes, int, int j,
                                              int live) {
    if (!From::kIsWhole && j * kBlockSteps >= live) return;
    const unsigned char* at = bytes + j * kBytes;
    const int lane = threadIdx.x & 31;
    part.q = From::template at<QuantsOfLane>(at + lane * sizeof(QuantsOfLane));
    part.d = From::template at<unsigned>(at + kQuantBytes + (lane >> 2) * 4);
  }
};

// Bytes of q + 128. d * q is exact in f32, so the only rounding is that to bf16.
struct Q8_0 : Blocks<uint4, matmul::kQ8Quants> {
  static constexpr DType kType = DType::q8_0;

  // 2^23 + byte as bits, less 2^23 + 128.
  static __device__ __forceinline__ float quant(unsigned word, int byte) {
    return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440 + byte)) - 8388736.0f;
  }
  static __device__ __forceinline__ unsigned pair(unsigned word, int byte, float d) {
    return pack_bf16(quant(word, byte) * d, quant(word, byte + 1) * d);
  }
  static __device__ __forceinline__ void widen(uint4 (&out)[kBlockSteps], const Part& part) {
    const float low = widen_f16(static_cast<unsigned short>(part.d)),
                high = widen_f16(static_cast<unsigned short>(part.d >> 16));
    const unsigned q[4] = {part.q.x, part.q.y, part.q.z, part.q.w};
#pragma unroll
    for (int s = 0; s < kBlockSteps; ++s)
      out[s] = make_uint4(pair(q[2 * s], 0, low), pair(q[2 * s], 2, high),
                          pair(q[2 * s + 1], 0, low), pair(q[2 * s + 1], 2, high));
  }
};

__device__ __forceinline__ unsigned fma_bf16(unsigned a, unsigned b, unsigned c) {
  unsigned out;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
}

// Two small integers as bf16, less what their bits carry beside them: bits are 128 + each.
__device__ __forceinline__ unsigned unbiased(unsigned bits, unsigned minus) {
  return fma_bf16(bits | 0x43004300u, 0x3f803f80u, minus);
}

// Nibbles of q + 8, two elements at a time in bf16: d is a bf16 and the three bits that are left of
// its eleven, high + low. low * q has six bits at most and is exact, so fma(high, q, low * q) is
// d * q rounded once. (A zero may have another sign than the codec's: no sum that starts from +0
// shows it.)
struct Q4_0 : Blocks<uint2, matmul::kQ4Quants> {
  static constexpr DType kType = DType::q4_0;

  struct Scale {
    unsigned high, low;  // each twice

    __device__ __forceinline__ explicit Scale(unsigned short f16) {
      const float d = widen_f16(f16);
      const unsigned top = __float_as_uint(d) & 0xffff0000u;
      const float rest = d - __uint_as_float(top);
      high = __byte_perm(top, 0, 0x3232);
      // Of an infinite scale nothing is left, and not NaN.
      low = __byte_perm(__float_as_uint(rest == rest ? rest : 0.0f), 0, 0x3232);
    }
  };
  // The nibbles p and p + 4 of a word.
  static __device__ __forceinline__ unsigned pair(unsigned word, int p, const Scale& d) {
    const unsigned q = unbiased(word >> (4 * p) & 0x000f000fu, 0xc308c308u);  // less 136
    return fma_bf16(d.high, q, fma_bf16(d.low, q, 0x80008000u));
  }
  static __device__ __forceinline__ void widen(uint4 (&out)[kBlockSteps], const Part& part) {
    const Scale low(static_cast<unsigned short>(part.d)),
        high(static_cast<unsigned short>(part.d >> 16));
    const unsigned q[kBlockSteps] = {part.q.x, part.q.y};
#pragma unroll
    for (int s = 0; s < kBlockSteps; ++s)
      out[s] = make_uint4(pair(q[s], 0, low), pair(q[s], 1, high), pair(q[s], 2, low),
                          pair(q[s], 3, high));
  }
};

// What formats of 256-element blocks share. k is whole blocks, so a segment is always whole.
template <matmul::SuperTile kTile>
struct SuperBlocks {
  static constexpr bool kIsPacked = true;
  static constexpr int kSegmentBytes = kTile.run(), kOwn = kTile.own(), kBytes = kTile.bytes();
  // Where the parts of a segment's bytes begin, a first one's and a second's.
  static constexpr int kShared0 = kTile.shared_at(false), kShared1 = kTile.shared_at(true);
  static constexpr int kScales0 = kTile.scales_at(false), kScales1 = kTile.scales_at(true);
  static constexpr int kLow0 = kTile.low_at(false), kLow1 = kTile.low_at(true);
  static_assert(kSegmentBytes % 16 == 0 && kOwn % 16 == 0);

  static __host__ __device__ __forceinline__ long long tile_bytes(int n_steps) {
    return static_cast<long long>(n_steps) / (2 * kStepsPerSegment) * kBytes;
  }
  static __device__ __forceinline__ long long segment_at(int segment) {
    return static_cast<long long>(segment / 2) * kBytes + segment % 2 * kOwn;
  }
  static __device__ __forceinline__ int segment_bytes(int live) {
    return live > 0 ? kSegmentBytes : 0;
  }

 protected:
  static __device__ __forceinline__ int shared_at(int segment) {
    return segment % 2 == 0 ? kShared0 : kShared1;
  }
  static __device__ __forceinline__ int scales_at(int segment) {
    return segment % 2 == 0 ? kScales0 : kScales1;
  }
  static __device__ __forceinline__ int low_at(int segment) {
    return segment % 2 == 0 ? kLow0 : kLow1;
  }
};

// Two bf16 integers as f32.
__device__ __forceinline__ float2 widen_pair(unsigned q) {
  return make_float2(__uint_as_float(q << 16), __uint_as_float(q & 0xffff0000u));
}

// (d * scale) * q - dmin * min; both products are exact in f32, so an FMA rounds what the codec
// rounds, and then it is rounded to bf16.
struct Q4_K : SuperBlocks<matmul::kQ4KTile> {
  static constexpr DType kType = DType::q4_k;
  struct Part {
    uint2 q;
    uint2 d;             // f16 d and dmin of rows g and g + 8
    unsigned scales[3];  // of 48 bits a row, 16 of each: rows g and g + 8
    int group;
  };

  template <class From>
  static __device__ __forceinline__ void load(Part& part, const unsigned char* bytes, int segment,
                                              int j, int live) {
    if (!From::kIsWhole && live <= 0) return;
    const int lane = threadIdx.x & 31, g = lane >> 2;
    part.q = From::template at<uint2>(bytes + low_at(segment) + (j * 32 + lane) * 8);
    part.d = From::template at<uint2>(bytes + shared_at(segment) + g * 8);
#pragma unroll
    for (int i = 0; i < 3; ++i)
      part.scales[i] = From::template at<unsigned>(bytes + scales_at(segment) + i * 32 + g * 4);
    part.group = j;
  }

  struct Scale {
    float d, min;

    // Twelve bits a group: scale and minimum.
    __device__ __forceinline__ Scale(unsigned halves, unsigned low, unsigned high, int group) {
      const unsigned both =
          group == 3 ? high >> 4 : __funnelshift_r(low, high, static_cast<unsigned>(12 * group));
      d = widen_f16(static_cast<unsigned short>(halves)) * static_cast<float>(both & 63u);
      min = widen_f16(static_cast<unsigned short>(halves >> 16)) *
            static_cast<float>(both >> 6 & 63u);
    }
  };
  static __device__ __forceinline__ unsigned pair(unsigned word, int p, const Scale& s) {
    const float2 q = widen_pair(unbiased(word >> (4 * p) & 0x000f000fu, 0xc300c300u));  // less 128
    return pack_bf16(__fmaf_rn(q.x, s.d, -s.min), __fmaf_rn(q.y, s.d, -s.min));
  }
  static __device__ __forceinline__ void widen(uint4 (&out)[kBlockSteps], const Part& part) {
    const Scale low(part.d.x, __byte_perm(part.scales[0], part.scales[1], 0x5410),
                    part.scales[2] & 0xffffu, part.group);
    const Scale high(part.d.y, __byte_perm(part.scales[0], part.scales[1], 0x7632),
                     part.scales[2] >> 16, part.group);
    const unsigned q[kBlockSteps] = {part.q.x, part.q.y};
#pragma unroll
    for (int s = 0; s < kBlockSteps; ++s)
      out[s] = make_uint4(pair(q[s], 0, low), pair(q[s], 1, high), pair(q[s], 2, low),
                          pair(q[s], 3, high));
  }
};

// (d * scale) * q, exact in f32, a scale a step.
struct Q6_K : SuperBlocks<matmul::kQ6KTile> {
  static constexpr DType kType = DType::q6_k;
  struct Part {
    uint2 low;
    unsigned high;    // two bits of pair after pair, its first elements below, its second above
    unsigned d;       // f16 of rows g and g + 8
    unsigned scales;  // of (row g, row g + 8), step after step
  };

  template <class From>
  static __device__ __forceinline__ void load(Part& part, const unsigned char* bytes, int segment,
                                              int j, int live) {
    if (!From::kIsWhole && live <= 0) return;
    const int lane = threadIdx.x & 31, g = lane >> 2;
    constexpr int kHigh = matmul::kQ6KTile.low;  // behind the low bits
    const unsigned char* low = bytes + low_at(segment);
    part.low = From::template at<uint2>(low + (j * 32 + lane) * 8);
    part.high = From::template at<unsigned>(low + kHigh + (j * 32 + lane) * 4);
    part.d = From::template at<unsigned>(bytes + shared_at(segment) + g * 4);
    part.scales = From::template at<unsigned>(bytes + scales_at(segment) + j * 32 + g * 4);
  }
  static __device__ __forceinline__ unsigned pair(unsigned low, unsigned high, int p, float d) {
    const unsigned bits = (low >> (4 * p) & 0x000f000fu) | (high >> (2 * p) & 0x00030003u) << 4;
    const float2 q = widen_pair(unbiased(bits, 0xc320c320u));  // less 160
    return pack_bf16(q.x * d, q.y * d);
  }
  static __device__ __forceinline__ void widen(uint4 (&out)[kBlockSteps], const Part& part) {
    const float d[2] = {widen_f16(static_cast<unsigned short>(part.d)),
                        widen_f16(static_cast<unsigned short>(part.d >> 16))};
    const unsigned q[kBlockSteps] = {part.low.x, part.low.y};
#pragma unroll
    for (int s = 0; s < kBlockSteps; ++s) {
      const unsigned high = part.high >> (8 * s);
      const float low_d =
          d[0] * static_cast<float>(static_cast<signed char>(part.scales >> (16 * s)));
      const float high_d =
          d[1] * static_cast<float>(static_cast<signed char>(part.scales >> (16 * s + 8)));
      out[s] = make_uint4(pair(q[s], high, 0, low_d), pair(q[s], high, 1, high_d),
                          pair(q[s], high, 2, low_d), pair(q[s], high, 3, high_d));
    }
  }
};

// Calls run(Format()) of the weights' format.
template <class Run>
auto with_format(DType type, Run run) {
  if (type == DType::q8_0) return run(Q8_0());
  if (type == DType::q4_0) return run(Q4_0());
  if (type == DType::q4_k) return run(Q4_K());
  if (type == DType::q6_k) return run(Q6_K());
  return run(Bf16());
}

// Whether such weights are read as they are; all others are bf16.
inline bool is_packed(DType type) {
  return type == DType::q8_0 || type == DType::q4_0 || type == DType::q4_k || type == DType::q6_k;
}
// k of a product with such weights.
inline bool takes(DType type, long long k) {
  if (k <= 0) return false;
  if (type == DType::bf16) return k % matmul::kStepK == 0;
  if (type == DType::q4_k || type == DType::q6_k) return k % matmul::kSuperK == 0;
  return is_packed(type) && k % matmul::kBlockK == 0;
}

}  // namespace millrace::device_weights
