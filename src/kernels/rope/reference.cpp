#include <cmath>
#include <numbers>

#include "kernels/rope/op.h"
#include "tensor/element.h"

namespace millrace::rope::reference {
namespace {

struct Pair {
  long long first, second;
};

Pair pair_at(const Args& a, long long i) {
  if (a.order == PairOrder::normal) return {2 * i, 2 * i + 1};
  return {i, i + a.rot_dim / 2};
}

double angle_of(const Args& a, long long r, long long i) {
  const auto position = static_cast<unsigned long long>(static_cast<long long>(a.positions[r]));
  const auto phase = static_cast<long long>(position * a.turns[i]);
  return static_cast<double>(phase) * (std::numbers::pi * 0x1p-63);
}

void turn_head(const Args& a, long long r, long long from, long long to) {
  for (long long i = 0; i < a.rot_dim / 2; ++i) {
    const double angle = angle_of(a, r, i);
    const double c = std::cos(angle) * a.magnitude, s = std::sin(angle) * a.magnitude;
    const Pair p = pair_at(a, i);
    const double x0 = load_element(a.type, a.x, from + p.first);
    const double x1 = load_element(a.type, a.x, from + p.second);
    store_element(a.type, a.y, to + p.first, static_cast<float>(x0 * c - x1 * s));
    store_element(a.type, a.y, to + p.second, static_cast<float>(x1 * c + x0 * s));
  }
  for (long long d = a.rot_dim; d < a.head_dim; ++d)
    store_element(a.type, a.y, to + d, load_element(a.type, a.x, from + d));
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  const Share rows = exec.rows(a.n_rows), columns = exec.columns(a.n_heads * a.head_dim);
  for (long long r = rows.begin; r < rows.end; ++r)
    for (long long at = columns.begin; at < columns.end; at += a.head_dim)
      turn_head(a, r, r * a.x_stride + at, r * a.y_stride + at);
  return {};
}

void magnitudes(const Args& a, std::span<double> out) {
  const auto size = [&](long long i) { return std::fabs(load_element(a.type, a.x, i)); };
  for (long long item = 0; item < a.n_rows * a.n_heads; ++item) {
    const long long row = item / a.n_heads, offset = item % a.n_heads * a.head_dim;
    const long long from = row * a.x_stride + offset;
    double* to = out.data() + row * a.y_stride + offset;
    for (long long d = a.rot_dim; d < a.head_dim; ++d) to[d] = size(from + d);
    for (long long i = 0; i < a.rot_dim / 2; ++i) {
      const Pair p = pair_at(a, i);
      to[p.first] = to[p.second] =
          (static_cast<double>(size(from + p.first)) + size(from + p.second)) * a.magnitude;
    }
  }
}

}  // namespace millrace::rope::reference
