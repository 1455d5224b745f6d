// The witness: class cpu.attention.chunk256 of op.h as plain loops, one head of one row at a time.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/math.h"
#include "kernels/attention/op.h"
#include "tensor/element.h"

namespace millrace::attention::plain {
namespace {

constexpr float kNegInf = -std::numeric_limits<float>::infinity();

// What a chunk gives, and what a fold of several gives.
struct Part {
  float max = kNegInf, sum = 0;
  float o[kMaxHeadDim] = {};
};

// One head of one row, and where its tokens lie.
struct Head {
  const Args& a;
  long long row, head, kv_head;

  float q(long long d) const {
    return load_element(a.q_type, a.q, row * a.q_stride + head * a.head_dim + d);
  }
  long long block(long long t) const {
    const long long page = a.tables[a.sequences[row] * a.max_pages + t / a.page_tokens];
    return page * a.page_stride + kv_head * a.head_dim * a.page_tokens;
  }
  float k(long long t, long long d) const {
    return load_element(a.kv_type, a.k_pages, block(t) + d * a.page_tokens + t % a.page_tokens);
  }
  float v(long long t, long long d) const {
    return load_element(a.kv_type, a.v_pages, block(t) + t % a.page_tokens * a.head_dim + d);
  }
};

float score(const Head& h, long long t) {
  float sum = 0;
  for (long long d = 0; d < h.a.head_dim; ++d) sum = std::fma(h.q(d), h.k(t, d), sum);
  return sum * h.a.scale;
}

// -Inf is no base: subtracting it from itself would be NaN.
float base_of(float max) {
  return max == kNegInf ? 0.0f : max;
}

// Tokens [begin, end) of the chunk that starts at `start`.
Part chunk(const Head& h, long long start, long long begin, long long end) {
  Part part;
  float p[kChunkTokens] = {}, lanes[16] = {};
  for (long long t = begin; t < end; ++t) {
    p[t - start] = score(h, t);
    part.max = std::max(part.max, p[t - start]);
  }
  for (long long t = begin; t < end; ++t) {
    p[t - start] = math::exp(p[t - start] - base_of(part.max));
    lanes[(t - start) % 16] += p[t - start];
    for (long long d = 0; d < h.a.head_dim; ++d)
      part.o[d] = std::fma(p[t - start], h.v(t, d), part.o[d]);
  }
  for (int half = 8; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  part.sum = lanes[0];
  return part;
}

void fold(Part& state, const Part& next) {
  const float max = std::max(state.max, next.max);
  const float a = math::exp(state.max - base_of(max)), b = math::exp(next.max - base_of(max));
  state.sum = std::fma(state.sum, a, next.sum * b);
  state.max = max;
  for (long long d = 0; d < kMaxHeadDim; ++d) state.o[d] = std::fma(state.o[d], a, next.o[d] * b);
}

void run_head(const Head& h) {
  const Args& a = h.a;
  const long long last = a.positions[h.row];
  const long long first = a.window == 0 ? 0 : std::max(0LL, last - a.window + 1);
  Part state;
  for (long long start = first / kChunkTokens * kChunkTokens; start <= last;
       start += kChunkTokens) {
    const Part next =
        chunk(h, start, std::max(first, start), std::min(last + 1, start + kChunkTokens));
    if (start <= first)
      state = next;
    else
      fold(state, next);
  }
  const float scale = 1.0f / state.sum;
  for (long long d = 0; d < a.head_dim; ++d) {
    const float y = last < 0 ? 0.0f : state.o[d] * scale;
    store_element(a.q_type, a.out, (h.row * a.n_heads + h.head) * a.head_dim + d,
                  y != y ? std::numeric_limits<float>::quiet_NaN() : y);
  }
}

}  // namespace

bool takes(const Args& a) {
  return a.q_type == DType::f32;
}

Status run(const Args& a, Exec& exec) {
  const Share items = exec.share(a.n_rows * a.n_heads);
  for (long long i = items.begin; i < items.end; ++i) {
    const long long h = i % a.n_heads;
    run_head({a, i / a.n_heads, h, h / (a.n_heads / a.n_kv_heads)});
  }
  return {};
}

}  // namespace millrace::attention::plain
