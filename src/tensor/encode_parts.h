// The encoders behind encode(): from one block of f32 to its parts. Q8_0, Q4_0, Q4_1, Q5_0, Q5_1
// give GGUF's reference bytes; the formats with scales per group search for the scale (and minimum)
// of least weighted squared error. Finite input is assumed; anything else gives some valid block.
#pragma once

#include "tensor/block_parts.h"

namespace millrace {

void encode_parts(const BlockShape& shape, const float* x, BlockParts& parts);

}  // namespace millrace
