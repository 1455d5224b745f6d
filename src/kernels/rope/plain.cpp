// The witness: the class of op.h as plain loops.
#include <cmath>

#include "base/math.h"
#include "kernels/rope/op.h"
#include "tensor/element.h"

namespace millrace::rope::plain {
namespace {

void turn_pair(const Args& a, long long r, long long from, long long to, long long i) {
  const auto position = static_cast<unsigned long long>(static_cast<long long>(a.positions[r]));
  const auto phase = static_cast<int>(static_cast<unsigned>((position * a.turns[i]) >> 32));
  const math::SinCos turn = math::sincos(static_cast<float>(phase) * kRadiansPerPhase);
  const float c = turn.cos * a.magnitude, s = turn.sin * a.magnitude;
  const bool normal = a.order == PairOrder::normal;
  const long long first = normal ? 2 * i : i, second = normal ? 2 * i + 1 : i + a.rot_dim / 2;
  const float x0 = load_element(a.type, a.x, from + first);
  const float x1 = load_element(a.type, a.x, from + second);
  store_element(a.type, a.y, to + first, std::fma(x0, c, x1 * -s));
  store_element(a.type, a.y, to + second, std::fma(x1, c, x0 * s));
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  const Share rows = exec.rows(a.n_rows), columns = exec.columns(a.n_heads * a.head_dim);
  for (long long r = rows.begin; r < rows.end; ++r)
    for (long long at = columns.begin; at < columns.end; at += a.head_dim) {
      const long long from = r * a.x_stride + at, to = r * a.y_stride + at;
      for (long long i = 0; i < a.rot_dim / 2; ++i) turn_pair(a, r, from, to, i);
      for (long long d = a.rot_dim; d < a.head_dim; ++d)
        store_element(a.type, a.y, to + d, load_element(a.type, a.x, from + d));
    }
  return {};
}

}  // namespace millrace::rope::plain
