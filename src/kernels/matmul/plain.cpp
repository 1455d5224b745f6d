// The witness of class f32: every output one FMA chain in ascending i, over the file's rows.
// (Class i8b32 has its own in scalar.cpp.)
#include <cmath>
#include <vector>

#include "kernels/matmul/op.h"
#include "kernels/matmul/output.h"
#include "tensor/codec.h"
#include "tensor/format.h"

namespace millrace::matmul::plain {

bool takes(const Args& a) {
  return is_real(a.w_type) && a.x_type == DType::f32;
}

Status run(const Args& a, Exec& exec) {
  std::vector<float> w(static_cast<size_t>(a.k));
  const auto* x = static_cast<const float*>(a.x);
  const Share outputs = exec.columns(a.n);
  for (long long o = outputs.begin; o < outputs.end; ++o) {
    const size_t stride = bytes_of(a.w_type, a.k);
    decode(a.w_type, static_cast<const char*>(a.w) + static_cast<size_t>(o) * stride, w.data(),
           a.k);
    for (long long r = 0; r < a.n_rows; ++r) {
      float sum = 0;
      for (long long i = 0; i < a.k; ++i)
        sum = std::fma(x[r * a.k + i], w[static_cast<size_t>(i)], sum);
      store_output(a, r, o, sum);
    }
  }
  return {};
}

}  // namespace millrace::matmul::plain
