#include <bit>
#include <cmath>

#include "kernels/quantize/op.h"
#include "kernels/quantize/row.h"

namespace millrace::quantize::reference {
namespace {

uint32_t magnitude_bits(float value) {
  return std::bit_cast<uint32_t>(value) & 0x7fffffff;
}

// Ordered as integers, magnitudes put Inf above every number and NaN above Inf.
uint32_t largest_bits(const float* x) {
  uint32_t largest = 0;
  for (int i = 0; i < kBlock; ++i) largest = std::max(largest, magnitude_bits(x[i]));
  return largest;
}

void quantize_block(const float* x, signed char* q, float& scale, int& sum) {
  const uint32_t bits = largest_bits(x);
  const bool usable = bits >= kLeastBits && bits < kInfiniteBits;
  const float amax = std::bit_cast<float>(bits), inverse = 127.0f / amax;
  if (usable)
    scale = amax / 127.0f;
  else
    scale = bits >= kInfiniteBits ? std::bit_cast<float>(kNanBits) : 0.0f;
  sum = 0;
  for (int i = 0; i < kBlock; ++i) {
    q[i] = usable ? static_cast<signed char>(std::nearbyint(x[i] * inverse)) : 0;
    sum += q[i];
  }
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  const Share rows = exec.rows(a.n_rows), columns = exec.columns(a.k);
  for (long long r = rows.begin; r < rows.end; ++r) {
    const MutableRow row = mutable_row_at(a.y, a.k, r);
    for (long long b = columns.begin / kBlock; b < columns.end / kBlock; ++b)
      quantize_block(a.x + r * a.k + b * kBlock, row.q + b * kBlock, row.scale[b], row.sum[b]);
  }
  return {};
}

}  // namespace millrace::quantize::reference
