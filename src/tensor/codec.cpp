#include "tensor/codec.h"

#include <cstring>

#include "base/check.h"
#include "base/small_float.h"
#include "tensor/block_parts.h"
#include "tensor/encode_parts.h"
#include "tensor/format.h"

namespace millrace {
namespace {

void decode_parts(const BlockShape& shape, const BlockParts& parts, float* out) {
  const float d = f16_to_f32(parts.d), dmin = f16_to_f32(parts.dmin);
  for (int g = 0; g < shape.n_groups(); ++g) {
    const float scale = d * static_cast<float>(parts.scale[g]);
    const float min = dmin * static_cast<float>(parts.min[g]);
    for (int i = g * shape.group; i < (g + 1) * shape.group; ++i)
      out[i] = scale * static_cast<float>(parts.q[i]) - min;
  }
}

// Calls convert(block index) for each block of a row.
template <class Convert>
void for_each_block(DType type, int64_t elems, Convert convert) {
  const int64_t n_blocks = elems / format_of(type).block_elems;
  for (int64_t b = 0; b < n_blocks; ++b) convert(b);
}

}  // namespace

void decode(DType type, const void* blocks, float* out, int64_t elems) {
  const size_t bytes = bytes_of(type, elems);
  const auto* halves = static_cast<const uint16_t*>(blocks);
  if (type == DType::f32) {
    if (bytes != 0) std::memcpy(out, blocks, bytes);
  } else if (type == DType::f16) {
    for (int64_t i = 0; i < elems; ++i) out[i] = f16_to_f32(halves[i]);
  } else if (type == DType::bf16) {
    for (int64_t i = 0; i < elems; ++i) out[i] = bf16_to_f32(halves[i]);
  } else {
    const BlockShape& shape = block_shape(type);
    const int64_t block_bytes = format_of(type).block_bytes;
    BlockParts parts;
    for_each_block(type, elems, [&](int64_t b) {
      unpack_block(type, static_cast<const char*>(blocks) + b * block_bytes, parts);
      decode_parts(shape, parts, out + b * shape.elems);
    });
  }
}

void encode(DType type, const float* in, void* blocks, int64_t elems) {
  const size_t bytes = bytes_of(type, elems);
  auto* halves = static_cast<uint16_t*>(blocks);
  if (type == DType::f32) {
    if (bytes != 0) std::memcpy(blocks, in, bytes);
  } else if (type == DType::f16) {
    for (int64_t i = 0; i < elems; ++i) halves[i] = f32_to_f16(in[i]);
  } else if (type == DType::bf16) {
    for (int64_t i = 0; i < elems; ++i) halves[i] = f32_to_bf16(in[i]);
  } else {
    const BlockShape& shape = block_shape(type);
    const int64_t block_bytes = format_of(type).block_bytes;
    BlockParts parts;
    for_each_block(type, elems, [&](int64_t b) {
      encode_parts(shape, in + b * shape.elems, parts);
      pack_block(type, parts, static_cast<char*>(blocks) + b * block_bytes);
    });
  }
}

}  // namespace millrace
