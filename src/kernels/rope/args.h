#pragma once

#include "tensor/dtype.h"

namespace millrace::rope {

// Which two elements of a head turn together, i in [0, rot_dim / 2).
enum class PairOrder : unsigned char {
  normal,  // 2 * i and 2 * i + 1
  neox,    // i and i + rot_dim / 2
};

// Turns pair i of every head of row r by the angle of positions[r] * turns[i] / 2^64 full turns:
//   y0 = (x0 * cos - x1 * sin) * magnitude,  y1 = (x1 * cos + x0 * sin) * magnitude
// Elements from rot_dim on are copied.
struct Args {
  const void* x;         // type [n_rows][n_heads][head_dim], rows x_stride elements apart; may be y
  const int* positions;  // i32 [n_rows], any value
  // u64 [rot_dim / 2]: full turns per position as a binary fraction (make_frequencies in
  // frequencies.h)
  const unsigned long long* turns;
  void* y;  // type [n_rows][n_heads][head_dim], rows y_stride elements apart
  long long n_rows;
  long long n_heads;
  long long head_dim;
  long long rot_dim;   // even, 2 to head_dim
  long long x_stride;  // at least n_heads * head_dim
  long long y_stride;
  float magnitude;
  PairOrder order;
  DType type;  // f32 or bf16
};

}  // namespace millrace::rope
