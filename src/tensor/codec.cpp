#include "tensor/codec.h"

#include <cstring>

#include "base/check.h"
#include "base/small_float.h"
#include "tensor/codecs.h"
#include "tensor/encode_parts.h"

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

const Codec& codec_for(const Format& format, int64_t elems) {
  MILLRACE_CHECK(format.codec != nullptr, "{} has no codec", format.name);
  MILLRACE_CHECK(elems >= 0 && elems % format.block_elems == 0,
                 "{} elements of {} are not whole blocks", elems, format.name);
  return *format.codec;
}

void decode_f32(const Format&, const void* from, float* out, int64_t elems) {
  if (elems != 0) std::memcpy(out, from, static_cast<size_t>(elems) * sizeof(float));
}
void encode_f32(const Format&, const float* in, void* to, int64_t elems) {
  if (elems != 0) std::memcpy(to, in, static_cast<size_t>(elems) * sizeof(float));
}

template <float (*To)(uint16_t)>
void decode_halves(const Format&, const void* from, float* out, int64_t elems) {
  const auto* halves = static_cast<const uint16_t*>(from);
  for (int64_t i = 0; i < elems; ++i) out[i] = To(halves[i]);
}
template <uint16_t (*From)(float)>
void encode_halves(const Format&, const float* in, void* to, int64_t elems) {
  auto* halves = static_cast<uint16_t*>(to);
  for (int64_t i = 0; i < elems; ++i) halves[i] = From(in[i]);
}

}  // namespace

namespace codecs {

constinit const Codec f32 = {decode_f32, encode_f32};
constinit const Codec f16 = {decode_halves<f16_to_f32>, encode_halves<f32_to_f16>};
constinit const Codec bf16 = {decode_halves<bf16_to_f32>, encode_halves<f32_to_bf16>};

}  // namespace codecs

void decode_blocks(const Format& format, const void* from, float* out, int64_t elems) {
  const BlockShape& shape = format.codec->shape;
  const auto* block = static_cast<const uint8_t*>(from);
  BlockParts parts;
  for (int64_t i = 0; i < elems; i += shape.elems, block += format.block_bytes) {
    format.codec->unpack(block, parts);
    decode_parts(shape, parts, out + i);
  }
}

void encode_blocks(const Format& format, const float* in, void* to, int64_t elems) {
  const BlockShape& shape = format.codec->shape;
  auto* block = static_cast<uint8_t*>(to);
  BlockParts parts;
  for (int64_t i = 0; i < elems; i += shape.elems, block += format.block_bytes) {
    encode_parts(shape, in + i, parts);
    pack_block(format.type, parts, block);
  }
}

void decode(DType type, const void* blocks, float* out, int64_t elems) {
  const Format& format = format_of(type);
  codec_for(format, elems).decode(format, blocks, out, elems);
}

void encode(DType type, const float* in, void* blocks, int64_t elems) {
  const Format& format = format_of(type);
  codec_for(format, elems).encode(format, in, blocks, elems);
}

}  // namespace millrace
