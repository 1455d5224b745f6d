#include <cmath>
#include <vector>

#include "base/small_float.h"
#include "kernels/matmul/op.h"
#include "kernels/quantize/row.h"
#include "tensor/block_parts.h"
#include "tensor/codec.h"
#include "tensor/format.h"

namespace millrace::matmul::reference {
namespace {

std::vector<double> load_row(const Args& a, long long r) {
  std::vector<double> out(static_cast<size_t>(a.k));
  for (long long i = 0; i < a.k; ++i) {
    auto& value = out[static_cast<size_t>(i)];
    if (a.x_type == DType::q8_row) {
      const quantize::Row row = quantize::row_at(a.x, a.k, r);
      value = static_cast<double>(row.scale[i / quantize::kBlock]) * row.q[i];
    } else if (a.x_type == DType::f32) {
      value = static_cast<const float*>(a.x)[r * a.k + i];
    } else {
      value = bf16_to_f32(static_cast<const uint16_t*>(a.x)[r * a.k + i]);
    }
  }
  return out;
}

// |weight| of row o, a product and its minimum taken apart: they may cancel, their roundings do
// not.
std::vector<double> weight_magnitudes(const Args& a, long long o) {
  std::vector<double> out(static_cast<size_t>(a.k));
  const auto* row =
      static_cast<const char*>(a.w) + o * static_cast<long long>(bytes_of(a.w_type, a.k));
  if (!is_block_format(a.w_type)) {
    std::vector<float> w(out.size());
    decode(a.w_type, row, w.data(), a.k);
    for (size_t i = 0; i < w.size(); ++i) out[i] = std::fabs(w[i]);
    return out;
  }
  const BlockShape& shape = block_shape(a.w_type);
  BlockParts parts;
  for (long long b = 0; b < a.k / shape.elems; ++b) {
    unpack_block(a.w_type, row + b * format_of(a.w_type).block_bytes, parts);
    const double d = std::fabs(f16_to_f32(parts.d)), dmin = std::fabs(f16_to_f32(parts.dmin));
    for (int i = 0; i < shape.elems; ++i) {
      const int g = i / shape.group;
      out[static_cast<size_t>(b * shape.elems + i)] =
          d * std::abs(parts.scale[g]) * std::abs(parts.q[i]) + dmin * parts.min[g];
    }
  }
  return out;
}

double x_magnitude(const Args& a, long long r, long long i) {
  if (a.x_type == DType::q8_row) {
    const quantize::Row row = quantize::row_at(a.x, a.k, r);
    return std::fabs(static_cast<double>(row.scale[i / quantize::kBlock]) * row.q[i]);
  }
  if (a.x_type == DType::f32) return std::fabs(static_cast<const float*>(a.x)[r * a.k + i]);
  return std::fabs(bf16_to_f32(static_cast<const uint16_t*>(a.x)[r * a.k + i]));
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  std::vector<std::vector<double>> x;
  for (long long r = 0; r < a.n_rows; ++r) x.push_back(load_row(a, r));
  std::vector<float> w(static_cast<size_t>(a.k));
  const Share outputs = exec.columns(a.n);
  for (long long o = outputs.begin; o < outputs.end; ++o) {
    const size_t stride = bytes_of(a.w_type, a.k);
    decode(a.w_type, static_cast<const char*>(a.w) + static_cast<size_t>(o) * stride, w.data(),
           a.k);
    if (a.x_type == DType::bf16)
      for (float& value : w) value = bf16_to_f32(f32_to_bf16(value));
    for (long long r = 0; r < a.n_rows; ++r) {
      double sum = 0;
      for (size_t i = 0; i < w.size(); ++i) sum += x[static_cast<size_t>(r)][i] * w[i];
      if (a.y_type == DType::f32)
        static_cast<float*>(a.y)[r * a.n + o] = static_cast<float>(sum);
      else
        static_cast<uint16_t*>(a.y)[r * a.n + o] = f32_to_bf16(static_cast<float>(sum));
    }
  }
  return {};
}

double chain_error(long long k, DType x_type) {
  const double links =
      x_type == DType::q8_row ? static_cast<double>(k) / 16 : static_cast<double>(k);
  return (links + 8) * 0x1p-24;
}

void magnitudes(const Args& a, std::span<double> out) {
  for (long long o = 0; o < a.n; ++o) {
    const std::vector<double> w = weight_magnitudes(a, o);
    for (long long r = 0; r < a.n_rows; ++r) {
      double sum = 0;
      for (long long i = 0; i < a.k; ++i) sum += w[static_cast<size_t>(i)] * x_magnitude(a, r, i);
      out[static_cast<size_t>(r * a.n + o)] = sum;
    }
  }
}

}  // namespace millrace::matmul::reference
