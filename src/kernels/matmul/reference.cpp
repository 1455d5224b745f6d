#include <vector>

#include "base/small_float.h"
#include "kernels/matmul/op.h"
#include "kernels/quantize/row.h"
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

}  // namespace millrace::matmul::reference
