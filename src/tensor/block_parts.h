// A block taken apart into integers and fp16 scales, the same way for every block format, and put
// together again (exact inverses). The value of element e, in group g = e / group, is
//   (d * scale[g]) * q[e] - (dmin * min[g])
// with each operation rounded to f32: the order of GGUF's reference decoders. The codec, the packed
// weight layouts and the tests all read blocks through this.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace millrace {

struct BlockParts {
  uint16_t d;        // fp16 bits
  uint16_t dmin;     // fp16 bits; +0 where the format has no minimum. Q4_1, Q5_1: -m
  int8_t q[256];     // signed where the format is (Q4_0: -8 to 7), IQ4: the table's value
  int8_t scale[16];  // 1 where the format has none
  uint8_t min[16];   // 0 where the format has no minimum. Q4_1, Q5_1: 1
};

// The integers a format's blocks can hold.
struct BlockShape {
  int elems;  // per block
  int group;  // elements that share a scale
  int q_bits;
  int q_bias;      // subtracted from the stored code
  int scale_bits;  // 0: no scale but d
  int scale_bias;
  bool has_min;
  bool table;  // q is an index of kIq4Values
  constexpr int n_groups() const { return elems / group; }
};

const BlockShape& block_shape(DType type);  // block formats of GGUF only

void unpack_block(DType type, const void* block, BlockParts& parts);
void pack_block(DType type, const BlockParts& parts, void* block);

}  // namespace millrace
