#include <algorithm>
#include <cmath>

#include "base/small_float.h"
#include "kernels/matmul/op.h"
#include "kernels/matmul/output.h"
#include "kernels/quantize/row.h"
#include "tensor/block_parts.h"
#include "tensor/format.h"

namespace millrace::matmul::scalar {
namespace {

using quantize::kBlock;

constexpr int kRows = 16;  // a block is taken apart once for so many rows

// Thirty-two consecutive elements of a weight row, as the class sees them: one or two groups.
struct Weights32 {
  const int8_t* q;
  const int8_t* scale;
  const uint8_t* min;
  int group;
  bool has_min;
  float d, dmin;
};

int dot(const int8_t* q, const signed char* x, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += q[i] * x[i];
  return sum;
}

int sum_of(const signed char* x, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i];
  return sum;
}

// A scale for all 32 joins d; one for each half multiplies its half's integer dot.
float add_block(const Weights32& w, const signed char* x, float dx, float acc) {
  if (w.group == kBlock) {
    const float dw = w.d * static_cast<float>(w.scale[0]);
    acc = std::fma(dw * dx, static_cast<float>(dot(w.q, x, kBlock)), acc);
    if (!w.has_min) return acc;
    const float mw = -(w.dmin * static_cast<float>(w.min[0]));
    return std::fma(mw, dx * static_cast<float>(sum_of(x, kBlock)), acc);
  }
  int idot = 0, imin = 0;
  for (int h = 0; h < kBlock / w.group; ++h) {
    idot += w.scale[h] * dot(w.q + h * w.group, x + h * w.group, w.group);
    imin += w.min[h] * sum_of(x + h * w.group, w.group);
  }
  acc = std::fma(w.d * dx, static_cast<float>(idot), acc);
  return w.has_min ? std::fma(-w.dmin, dx * static_cast<float>(imin), acc) : acc;
}

Weights32 part_of(const BlockShape& shape, const BlockParts& parts, int first) {
  const int group = std::min(shape.group, kBlock), g = first / group;
  return {parts.q + first, parts.scale + g,     parts.min + g,         group,
          shape.has_min,   f16_to_f32(parts.d), f16_to_f32(parts.dmin)};
}

// Output o of rows [first, first + n), n <= kRows.
void product(const Args& a, long long o, long long first, int n) {
  const BlockShape& shape = block_shape(a.w_type);
  const auto* w =
      static_cast<const char*>(a.w) + o * static_cast<long long>(bytes_of(a.w_type, a.k));
  float acc[kRows] = {};
  BlockParts parts;
  for (long long i = 0; i < a.k; i += shape.elems, w += format_of(a.w_type).block_bytes) {
    unpack_block(a.w_type, w, parts);
    for (int r = 0; r < n; ++r) {
      const quantize::Row x = quantize::row_at(a.x, a.k, first + r);
      for (int j = 0; j < shape.elems; j += kBlock)
        acc[r] =
            add_block(part_of(shape, parts, j), x.q + i + j, x.scale[(i + j) / kBlock], acc[r]);
    }
  }
  for (int r = 0; r < n; ++r) store_output(a, first + r, o, acc[r]);
}

}  // namespace

bool takes(const Args& a) {
  return a.x_type == DType::q8_row;
}

Status run(const Args& a, Exec& exec) {
  const Share outputs = exec.columns(a.n);
  for (long long o = outputs.begin; o < outputs.end; ++o)
    for (long long r = 0; r < a.n_rows; r += kRows)
      product(a, o, r, static_cast<int>(std::min<long long>(kRows, a.n_rows - r)));
  return {};
}

}  // namespace millrace::matmul::scalar
