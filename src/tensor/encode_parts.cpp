#include "tensor/encode_parts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "base/small_float.h"
#include "tensor/blocks.h"

namespace millrace {
namespace {

using Group = std::span<const float>;

// Truncates; NaN gives lo. The range is checked before the conversion, so nothing is undefined.
int to_int(float value, int lo, int hi) {
  if (!(value > static_cast<float>(lo))) return lo;
  return value < static_cast<float>(hi) ? static_cast<int>(value) : hi;
}

int nearest(float value, int lo, int hi) {
  return to_int(std::nearbyint(value), lo, hi);
}

int lowest_q(const BlockShape& s) {
  return s.table ? kIq4Values[0] : -s.q_bias;
}

int nearest_q(const BlockShape& s, float value) {
  if (!s.table) return nearest(value, -s.q_bias, (1 << s.q_bits) - 1 - s.q_bias);
  int best = kIq4Values[0];
  for (int q : kIq4Values)
    if (std::fabs(value - static_cast<float>(q)) < std::fabs(value - static_cast<float>(best)))
      best = q;
  return best;
}

float inverse(float d) {
  return d == 0 ? 0.0f : 1.0f / d;
}

// The element of largest magnitude, the first of equals, with its sign.
float signed_max(Group x) {
  float max = 0;
  for (float v : x)
    if (std::fabs(v) > std::fabs(max)) max = v;
  return max;
}

void encode_q8_0(Group x, BlockParts& parts) {
  const float d = std::fabs(signed_max(x)) / 127, inv = inverse(d);
  for (size_t i = 0; i < x.size(); ++i) {
    const float v = x[i] * inv;
    parts.q[i] = static_cast<int8_t>(to_int(v < 0 ? v - 0.5f : v + 0.5f, -127, 127));
  }
  parts.d = f32_to_f16(d);
}

void encode_symmetric(const BlockShape& s, Group x, BlockParts& parts) {
  const float bias = static_cast<float>(s.q_bias);
  const float d = signed_max(x) / -bias, inv = inverse(d);
  for (size_t i = 0; i < x.size(); ++i)
    parts.q[i] =
        static_cast<int8_t>(to_int(x[i] * inv + (bias + 0.5f), 0, (1 << s.q_bits) - 1) - s.q_bias);
  parts.d = f32_to_f16(d);
}

void encode_affine(const BlockShape& s, Group x, BlockParts& parts) {
  float lo = x[0], hi = x[0];
  for (float v : x) {
    lo = v < lo ? v : lo;
    hi = v > hi ? v : hi;
  }
  const int q_max = (1 << s.q_bits) - 1;
  const float d = (hi - lo) / static_cast<float>(q_max), inv = inverse(d);
  for (size_t i = 0; i < x.size(); ++i)
    parts.q[i] = static_cast<int8_t>(to_int((x[i] - lo) * inv + 0.5f, 0, q_max));
  parts.d = f32_to_f16(d);
  parts.dmin = f32_to_f16(lo) ^ 0x8000;
  parts.min[0] = 1;
}

// The scale that, with each x at its nearest q, leaves the least sum of x^2 * error^2: for given q
// that is sum(w x q) / sum(w q q), and the larger sum(w x q)^2 / sum(w q q) wins. Candidates lie
// around the one that puts the largest |x| on the longer end of the range.
float best_scale(const BlockShape& s, Group x) {
  const float max = signed_max(x);
  float best = 0, best_merit = 0;
  if (!(std::fabs(max) >= 1e-30f)) return best;
  const float step = s.table ? 1.0f : 0.1f;
  for (int i = -9; i <= 9; ++i) {
    const float inv = (static_cast<float>(lowest_q(s)) + step * static_cast<float>(i)) / max;
    float xq = 0, qq = 0;
    for (float v : x) {
      const float q = static_cast<float>(nearest_q(s, inv * v)), w = v * v;
      xq += w * v * q;
      qq += w * q * q;
    }
    if (qq > 0 && xq * xq > best_merit * qq) {
      best = xq / qq;
      best_merit = xq * xq / qq;
    }
  }
  return best;
}

void encode_one_scale(const BlockShape& s, Group x, BlockParts& parts) {
  const float d = best_scale(s, x), inv = inverse(d);
  for (size_t i = 0; i < x.size(); ++i) parts.q[i] = static_cast<int8_t>(nearest_q(s, x[i] * inv));
  parts.d = f32_to_f16(d);
}

void encode_scaled(const BlockShape& s, Group x, BlockParts& parts) {
  const size_t group = static_cast<size_t>(s.group), n_groups = static_cast<size_t>(s.n_groups());
  float scales[16];
  for (size_t g = 0; g < n_groups; ++g) scales[g] = best_scale(s, x.subspan(g * group, group));
  const int half = 1 << (s.scale_bits - 1);
  parts.d = f32_to_f16(signed_max({scales, n_groups}) / static_cast<float>(-half));
  const float d = f16_to_f32(parts.d), inv = inverse(d);
  for (size_t g = 0; g < n_groups; ++g) {
    const int scale = nearest(scales[g] * inv, -half, half - 1);
    const float q_inv = inverse(d * static_cast<float>(scale));
    parts.scale[g] = static_cast<int8_t>(scale);
    for (size_t i = g * group; i < (g + 1) * group; ++i)
      parts.q[i] = static_cast<int8_t>(nearest_q(s, x[i] * q_inv));
  }
}

struct Line {  // x is about scale * q - min, both not negative
  float scale = 0, min = 0;
};

// Weighted least squares of x against given q.
struct Fit {
  float w = 0, q = 0, qq = 0, x = 0, xq = 0;

  void add(float weight, float value, float code) {
    w += weight;
    q += weight * code;
    qq += weight * code * code;
    x += weight * value;
    xq += weight * value * code;
  }
  Line line() const {
    const float det = w * qq - q * q;
    if (!(det > 0)) return {};
    const float min = (q * xq - qq * x) / det;
    if (min < 0) return {xq / qq, 0};
    return {(w * xq - q * x) / det, min};
  }
};

// Tries codes from scales around (max - min) / q_max and keeps the line of least weighted error.
Line best_line(const BlockShape& s, Group x) {
  float lo = 0, hi = 0, squares = 0;
  for (float v : x) {
    lo = v < lo ? v : lo;
    hi = v > hi ? v : hi;
    squares += v * v;
  }
  if (!(hi - lo >= 1e-30f)) return {};
  const float rms = std::sqrt(squares / static_cast<float>(x.size()));
  const int q_max = (1 << s.q_bits) - 1;
  Line best = {(hi - lo) / static_cast<float>(q_max), -lo};
  float best_error = INFINITY;
  for (int step = -10; step <= 10; ++step) {
    const float inv = (static_cast<float>(q_max) + 0.1f * static_cast<float>(step)) / (hi - lo);
    const auto code = [&](float v) {
      return static_cast<float>(nearest((v - lo) * inv, 0, q_max));
    };
    Fit fit;
    for (float v : x) fit.add(rms + std::fabs(v), v, code(v));
    const Line line = fit.line();
    float error = 0;
    for (float v : x) {
      const float miss = line.scale * code(v) - line.min - v;
      error += (rms + std::fabs(v)) * miss * miss;
    }
    if (line.scale > 0 && error < best_error) {
      best = line;
      best_error = error;
    }
  }
  return best;
}

void encode_lines(const BlockShape& s, Group x, BlockParts& parts) {
  const size_t group = static_cast<size_t>(s.group), n_groups = static_cast<size_t>(s.n_groups());
  Line lines[16], top;
  for (size_t g = 0; g < n_groups; ++g) {
    lines[g] = best_line(s, x.subspan(g * group, group));
    top = {std::max(top.scale, lines[g].scale), std::max(top.min, lines[g].min)};
  }
  const int s_max = (1 << s.scale_bits) - 1, q_max = (1 << s.q_bits) - 1;
  parts.d = f32_to_f16(top.scale / static_cast<float>(s_max));
  parts.dmin = f32_to_f16(top.min / static_cast<float>(s_max));
  const float d = f16_to_f32(parts.d), dmin = f16_to_f32(parts.dmin);
  for (size_t g = 0; g < n_groups; ++g) {
    const int scale = nearest(lines[g].scale * inverse(d), 0, s_max);
    const int min = nearest(lines[g].min * inverse(dmin), 0, s_max);
    const float inv = inverse(d * static_cast<float>(scale)),
                shift = dmin * static_cast<float>(min);
    parts.scale[g] = static_cast<int8_t>(scale);
    parts.min[g] = static_cast<uint8_t>(min);
    for (size_t i = g * group; i < (g + 1) * group; ++i)
      parts.q[i] = static_cast<int8_t>(nearest((x[i] + shift) * inv, 0, q_max));
  }
}

}  // namespace

void encode_parts(const BlockShape& s, const float* data, BlockParts& parts) {
  const Group x(data, static_cast<size_t>(s.elems));
  parts.dmin = 0;
  std::memset(parts.min, 0, sizeof(parts.min));
  std::memset(parts.scale, 1, sizeof(parts.scale));
  if (s.scale_bits > 0) return s.has_min ? encode_lines(s, x, parts) : encode_scaled(s, x, parts);
  if (s.has_min) return encode_affine(s, x, parts);
  if (s.table) return encode_one_scale(s, x, parts);
  if (s.q_bits == 8) return encode_q8_0(x, parts);
  encode_symmetric(s, x, parts);
}

}  // namespace millrace
