// The codecs that the rows of format.cpp name. Users call codec.h and block_parts.h.
#pragma once

#include <cstdint>

#include "tensor/block_parts.h"
#include "tensor/format.h"

namespace millrace {

struct Codec {
  // `elems` is whole blocks.
  void (*decode)(const Format& format, const void* from, float* out, int64_t elems);
  void (*encode)(const Format& format, const float* in, void* to, int64_t elems);
  // A block taken apart and put together (into bytes that are 0), where the format has parts.
  BlockShape shape = {};
  void (*unpack)(const uint8_t* block, BlockParts& parts) = nullptr;
  void (*pack)(const BlockParts& parts, uint8_t* block) = nullptr;
};

// Decode and encode by way of a block's parts.
void decode_blocks(const Format& format, const void* from, float* out, int64_t elems);
void encode_blocks(const Format& format, const float* in, void* to, int64_t elems);

namespace codecs {

extern const Codec f32, f16, bf16;
extern const Codec q8_0, q4_0, q4_1, q5_0, q5_1, iq4_nl;
extern const Codec q2_k, q3_k, q4_k, q5_k, q6_k, iq4_xs;

}  // namespace codecs
}  // namespace millrace
