// The element types a tensor can have. This header is plain enough for nvcc and NVRTC: no std
// headers. What a block of each type holds is in tensor/format.h.
#pragma once

namespace millrace {

// Values are our own, not GGUF's. format.cpp has one row for each, in this order; no other code may
// depend on the order.
enum class DType : unsigned char {
  f32,
  f16,
  bf16,
  i32,
  i8,
  u8,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  q8_row,  // activations: int8 in blocks of 32 with a scale each, laid out by kernels/quantize
};

}  // namespace millrace
