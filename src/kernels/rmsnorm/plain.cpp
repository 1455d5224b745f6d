// The witnesses: the classes of op.h and sm80.cu as plain loops.
#include <cmath>

#include "kernels/rmsnorm/groups.h"
#include "kernels/rmsnorm/op.h"
#include "tensor/element.h"

namespace millrace::rmsnorm::plain {
namespace {

// Lane j takes elements j, j + kLanes, ...
template <int kLanes>
struct Lanes {
  float sum[kLanes] = {};

  Lanes(const Args& a, long long first) {
    for (long long i = 0; i < a.n; ++i) {
      const float x = load_element(a.x_type, a.x, first + i);
      sum[i % kLanes] = std::fma(x, x, sum[i % kLanes]);
    }
  }
  // n lanes from `first` on: the upper half onto the lower, until one is left.
  float fold(int first, int n) {
    for (int half = n / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) sum[first + j] += sum[first + j + half];
    return sum[first];
  }
};

float sum_lanes16(const Args& a, long long first) {
  return Lanes<16>(a, first).fold(0, 16);
}

float sum_lanes256(const Args& a, long long first) {
  Lanes<256> lanes(a, first);
  float sum = lanes.fold(0, 32);
  for (int part = 1; part < 8; ++part) sum += lanes.fold(32 * part, 32);
  return sum;
}

template <float (*kSum)(const Args&, long long)>
Status run(const Args& a, Exec& exec) {
  for_each_group(a, exec, [&](long long g) {
    const float mean = kSum(a, g * a.n) / static_cast<float>(a.n);
    const float scale = 1.0f / std::sqrt(mean + a.eps);
    for (long long i = 0; i < a.n; ++i)
      store_element(a.y_type, a.y, g * a.n + i,
                    load_element(a.x_type, a.x, g * a.n + i) * scale * a.weight[i]);
  });
  return {};
}

}  // namespace

Status run_lanes16(const Args& a, Exec& exec) {
  return run<sum_lanes16>(a, exec);
}

Status run_lanes256(const Args& a, Exec& exec) {
  return run<sum_lanes256>(a, exec);
}

}  // namespace millrace::rmsnorm::plain
