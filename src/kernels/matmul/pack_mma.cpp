#include "kernels/matmul/pack_mma.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/small_float.h"
#include "kernels/matmul/tile.cuh"
#include "tensor/block_parts.h"
#include "tensor/codec.h"
#include "tensor/format.h"

namespace millrace::matmul {
namespace {

long long tiles_of(const Args& a) {
  return (a.n + kTileM - 1) / kTileM;
}

// Calls visit(output, k, index of the element in the packed weight) for every element of the tiles.
template <class Visit>
void for_each_element(const Args& a, Visit visit) {
  long long i = 0;
  for (long long output = 0; output < tiles_of(a) * kTileM; output += kTileM)
    for (long long k = 0; k < a.k; k += kStepK)
      for (int lane = 0; lane < 32; ++lane)
        for (int element = 0; element < 8; ++element)
          visit(output + lane / 4 + element / 2 % 2 * 8,
                k + lane % 4 * 2 + element % 2 + element / 4 * 8, i++);
}

// Where element e of a block's output o lies: of which lane, and which of its 16 elements.
struct Place {
  int lane, element;
};
constexpr Place place_of(int o, int e) {
  const int step = e / kStepK, column = e % kStepK;
  const int lane = o % 8 * 4 + column % 8 / 2;
  return {lane, step * 8 + column / 8 * 4 + o / 8 * 2 + column % 2};
}
constexpr int scale_of(int o) {
  return o % 8 * 4 + o / 8 * 2;
}

// Where the nibble of element e of a 32 lies in that part's bytes, and its two further bits.
struct Bits {
  int byte, shift;
};
constexpr Bits nibble_of(int o, int e) {
  const Place p = place_of(o, e);
  const int in_step = p.element % 8, nibble = in_step / 2 + in_step % 2 * 4;
  return {p.lane * 8 + p.element / 8 * 4 + nibble / 2, nibble % 2 * 4};
}
constexpr Bits high_of(int o, int e) {
  const Place p = place_of(o, e);
  const int pair = p.element / 2, bit = 2 * pair + p.element % 2 * 16;
  return {p.lane * 4 + bit / 8, bit % 8};
}

void put(uint8_t* bytes, Bits at, int value) {
  bytes[at.byte] = static_cast<uint8_t>(bytes[at.byte] | value << at.shift);
}
int get(const uint8_t* bytes, Bits at, int mask) {
  return bytes[at.byte] >> at.shift & mask;
}

// One output's block between the file and a tile's block.
struct Q8Blocks {
  static constexpr int kFileBytes = 34, kBytes = kQ8Bytes, kQuants = kQ8Quants, kElems = kBlockK;
  static void pack(int o, const uint8_t* file, uint8_t* block) {
    std::memcpy(block + kQuants + scale_of(o), file, 2);
    for (int e = 0; e < kBlockK; ++e) *at(block, o, e) = file[2 + e] ^ 0x80;
  }
  static void unpack(int o, const uint8_t* block, uint8_t* file) {
    std::memcpy(file, block + kQuants + scale_of(o), 2);
    for (int e = 0; e < kBlockK; ++e) file[2 + e] = *at(block, o, e) ^ 0x80;
  }
  template <class Byte>
  static Byte* at(Byte* block, int o, int e) {
    const Place p = place_of(o, e);
    return block + p.lane * 16 + p.element;
  }
};

struct Q4Blocks {
  static constexpr int kFileBytes = 18, kBytes = kQ4Bytes, kQuants = kQ4Quants, kElems = kBlockK;
  static void pack(int o, const uint8_t* file, uint8_t* block) {
    std::memcpy(block + kQuants + scale_of(o), file, 2);
    for (int e = 0; e < kBlockK; ++e)
      put(block, nibble_of(o, e), file[2 + e % 16] >> (e / 16 * 4) & 15);
  }
  static void unpack(int o, const uint8_t* block, uint8_t* file) {
    std::memset(file, 0, kFileBytes);
    std::memcpy(file, block + kQuants + scale_of(o), 2);
    for (int e = 0; e < kBlockK; ++e)
      put(file + 2, {e % 16, e / 16 * 4}, get(block, nibble_of(o, e), 15));
  }
};

constexpr int kParts = kSegment / kBlockK;

// The bytes of one segment of a tile's block, as tile.cuh lays them out.
template <class Byte>
struct Run {
  Byte *shared, *scales, *low, *high;

  Run(Byte* block, const SuperTile& tile, int segment) {
    const bool second = segment % 2 != 0;
    Byte* run = block + (second ? tile.own() : 0);
    shared = run + tile.shared_at(second);
    scales = run + tile.scales_at(second);
    low = run + tile.low_at(second);
    high = run + tile.high_at(second);
  }
};

struct Q4KBlocks {
  static constexpr int kFileBytes = 144, kBytes = kQ4KTile.bytes(), kElems = kSuperK;
  // Twelve bits a group, scale and minimum, in three words of 16.
  static uint64_t scales_of(const BlockParts& parts, int segment) {
    uint64_t bits = 0;
    for (int j = 0; j < kParts; ++j) {
      const auto g = static_cast<size_t>(segment * kParts + j);
      bits |= static_cast<uint64_t>(parts.scale[g] | parts.min[g] << 6) << (12 * j);
    }
    return bits;
  }
  static void pack(int o, const uint8_t* file, uint8_t* block) {
    BlockParts parts;
    unpack_block(DType::q4_k, file, parts);
    for (int segment = 0; segment < 2; ++segment) {
      const Run run(block, kQ4KTile, segment);
      std::memcpy(run.shared + 2 * scale_of(o), &parts.d, 2);
      std::memcpy(run.shared + 2 * scale_of(o) + 2, &parts.dmin, 2);
      const uint64_t bits = scales_of(parts, segment);
      for (int i = 0; i < 3; ++i) {
        const auto word = static_cast<uint16_t>(bits >> (16 * i));
        std::memcpy(run.scales + i * kScaleBytes + scale_of(o), &word, 2);
      }
      for (int e = 0; e < kSegment; ++e)
        put(run.low + e / kBlockK * kQ4Quants, nibble_of(o, e % kBlockK),
            parts.q[segment * kSegment + e]);
    }
  }
  static void unpack(int o, const uint8_t* block, uint8_t* file) {
    BlockParts parts = {};
    for (int segment = 0; segment < 2; ++segment) {
      const Run run(block, kQ4KTile, segment);
      std::memcpy(&parts.d, run.shared + 2 * scale_of(o), 2);
      std::memcpy(&parts.dmin, run.shared + 2 * scale_of(o) + 2, 2);
      uint64_t bits = 0;
      for (int i = 0; i < 3; ++i) {
        uint16_t word;
        std::memcpy(&word, run.scales + i * kScaleBytes + scale_of(o), 2);
        bits |= static_cast<uint64_t>(word) << (16 * i);
      }
      for (int j = 0; j < kParts; ++j) {
        parts.scale[segment * kParts + j] = static_cast<int8_t>(bits >> (12 * j) & 63);
        parts.min[segment * kParts + j] = static_cast<uint8_t>(bits >> (12 * j + 6) & 63);
      }
      for (int e = 0; e < kSegment; ++e)
        parts.q[segment * kSegment + e] = static_cast<int8_t>(
            get(run.low + e / kBlockK * kQ4Quants, nibble_of(o, e % kBlockK), 15));
    }
    pack_block(DType::q4_k, parts, file);
  }
};

struct Q6KBlocks {
  static constexpr int kFileBytes = 210, kBytes = kQ6KTile.bytes(), kElems = kSuperK;
  static constexpr int kHighBytes = kQ4Quants / 2;  // of a part
  // A part's scales: (rows g and g + 8) of its first step, then of its second.
  static int scale_at(int o, int step) {
    return step / kBlockSteps * kScaleBytes + o % 8 * 4 + step % kBlockSteps * 2 + o / 8;
  }
  static void pack(int o, const uint8_t* file, uint8_t* block) {
    BlockParts parts;
    unpack_block(DType::q6_k, file, parts);
    for (int segment = 0; segment < 2; ++segment) {
      const Run run(block, kQ6KTile, segment);
      std::memcpy(run.shared + scale_of(o), &parts.d, 2);
      for (int step = 0; step < kStepsPerSegment; ++step)
        run.scales[scale_at(o, step)] =
            static_cast<uint8_t>(parts.scale[segment * kStepsPerSegment + step]);
      for (int e = 0; e < kSegment; ++e) {
        const int q = parts.q[segment * kSegment + e] + 32, part = e / kBlockK;
        put(run.low + part * kQ4Quants, nibble_of(o, e % kBlockK), q & 15);
        put(run.high + part * kHighBytes, high_of(o, e % kBlockK), q >> 4);
      }
    }
  }
  static void unpack(int o, const uint8_t* block, uint8_t* file) {
    BlockParts parts = {};
    for (int segment = 0; segment < 2; ++segment) {
      const Run run(block, kQ6KTile, segment);
      std::memcpy(&parts.d, run.shared + scale_of(o), 2);
      for (int step = 0; step < kStepsPerSegment; ++step)
        parts.scale[segment * kStepsPerSegment + step] =
            static_cast<int8_t>(run.scales[scale_at(o, step)]);
      for (int e = 0; e < kSegment; ++e) {
        const int part = e / kBlockK;
        const int low = get(run.low + part * kQ4Quants, nibble_of(o, e % kBlockK), 15);
        const int high = get(run.high + part * kHighBytes, high_of(o, e % kBlockK), 3);
        parts.q[segment * kSegment + e] = static_cast<int8_t>((low | high << 4) - 32);
      }
    }
    pack_block(DType::q6_k, parts, file);
  }
};

// Calls visit(o of the tile, the output's block in the file's rows, the tile's block) for every
// block of every output.
template <class Blocks, class Visit>
void for_each_block(const Args& a, Visit visit) {
  const long long n_blocks = a.k / Blocks::kElems;
  for (long long output = 0; output < a.n; ++output)
    for (long long b = 0; b < n_blocks; ++b)
      visit(static_cast<int>(output % kTileM), (output * n_blocks + b) * Blocks::kFileBytes,
            (output / kTileM * n_blocks + b) * Blocks::kBytes);
}

template <class Blocks>
void pack_blocks(const Args& a, const void* plain, void* packed) {
  std::memset(packed, 0, mma16_bytes(a));
  for_each_block<Blocks>(a, [&](int o, long long from, long long to) {
    Blocks::pack(o, static_cast<const uint8_t*>(plain) + from, static_cast<uint8_t*>(packed) + to);
  });
}

template <class Blocks>
void unpack_blocks(const Args& a, const void* packed, void* plain) {
  for_each_block<Blocks>(a, [&](int o, long long to, long long from) {
    Blocks::unpack(o, static_cast<const uint8_t*>(packed) + from,
                   static_cast<uint8_t*>(plain) + to);
  });
}

}  // namespace

size_t mma16_bytes(const Args& a) {
  return bytes_of(a.w_type, tiles_of(a) * kTileM * a.k);
}

void pack_mma16(const Args& a, const void* plain, void* packed) {
  if (a.w_type == DType::q8_0) return pack_blocks<Q8Blocks>(a, plain, packed);
  if (a.w_type == DType::q4_0) return pack_blocks<Q4Blocks>(a, plain, packed);
  if (a.w_type == DType::q4_k) return pack_blocks<Q4KBlocks>(a, plain, packed);
  if (a.w_type == DType::q6_k) return pack_blocks<Q6KBlocks>(a, plain, packed);
  const auto* from = static_cast<const uint16_t*>(plain);
  auto* to = static_cast<uint16_t*>(packed);
  for_each_element(a, [&](long long o, long long k, long long i) {
    to[i] = o < a.n ? from[o * a.k + k] : uint16_t{0};
  });
}

void unpack_mma16(const Args& a, const void* packed, void* plain) {
  if (a.w_type == DType::q8_0) return unpack_blocks<Q8Blocks>(a, packed, plain);
  if (a.w_type == DType::q4_0) return unpack_blocks<Q4Blocks>(a, packed, plain);
  if (a.w_type == DType::q4_k) return unpack_blocks<Q4KBlocks>(a, packed, plain);
  if (a.w_type == DType::q6_k) return unpack_blocks<Q6KBlocks>(a, packed, plain);
  const auto* from = static_cast<const uint16_t*>(packed);
  auto* to = static_cast<uint16_t*>(plain);
  for_each_element(a, [&](long long o, long long k, long long i) {
    if (o < a.n) to[o * a.k + k] = from[i];
  });
}

size_t decoded_mma16_bytes(const Args& a) {
  Args rounded = a;
  rounded.w_type = DType::bf16;
  return mma16_bytes(rounded);
}

void pack_decoded_mma16(const Args& a, const void* plain, void* packed) {
  const auto elems = static_cast<size_t>(a.n * a.k);
  std::vector<float> values(elems);
  std::vector<uint16_t> rounded(elems);
  decode(a.w_type, plain, values.data(), a.n * a.k);
  std::transform(values.begin(), values.end(), rounded.begin(), f32_to_bf16);
  Args as_bf16 = a;
  as_bf16.w_type = DType::bf16;
  pack_mma16(as_bf16, rounded.data(), packed);
}

}  // namespace millrace::matmul
