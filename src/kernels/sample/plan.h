// One row's parameters, resolved: what the args' arrays mean for it. Shared by all variants, those
// of a GPU too: there every function is one of the device. The arithmetic of the class is in op.h.
#pragma once

#ifdef __CUDACC__
#include "base/math_cuda.cuh"
#include "base/philox_cuda.cuh"
#define MILLRACE_SAMPLE_INLINE __device__ __forceinline__
#else
#include "base/math.h"
#include "base/philox.h"
#define MILLRACE_SAMPLE_INLINE inline
#endif
#include "kernels/sample/args.h"

namespace millrace::sample {

#ifdef __CUDACC__
using cuda::philox_draw;
using math::cuda::log;
#else
using math::log;
inline float philox_draw(uint64_t seed, uint64_t position, uint32_t choice) {
  return philox_uniform(seed, position, choice);
}
#endif

inline constexpr long long kBlock = 1024;
inline constexpr float kNever = -__builtin_inff();
inline constexpr float kMostFloat = 0x1.fffffep127f;

struct Plan {
  const float* logits;
  bool greedy;
  float scale;             // 1 / temperature
  bool limited;            // by top_k
  long long n_candidates;  // top_k, or n
  double top_p;            // 1: off
  float min_p;             // 0: off
  double u;                // the draw, in [0, 1)
  bool wants_logprob;
  long long n_top;

  MILLRACE_SAMPLE_INLINE bool cuts() const { return limited || top_p < 1 || min_p > 0; }
};

// Any bits are safe here: what makes no sense (NaN, negative, out of range) switches its rule off.
MILLRACE_SAMPLE_INLINE Plan plan_of(const Args& a, long long r) {
  Plan plan;
  plan.logits = a.logits + (a.logits_row != nullptr ? a.logits_row[r] : r) * a.n;
  plan.scale = 1.0f / a.temperature[r];
  plan.greedy = !(a.temperature[r] > 0) || !(plan.scale <= kMostFloat) || plan.scale == 0;
  plan.limited = a.top_k[r] >= 1 && a.top_k[r] < a.n;
  plan.n_candidates = plan.limited ? a.top_k[r] : a.n;
  plan.top_p = a.top_p[r] < 1 ? a.top_p[r] : 1.0f;
  plan.min_p = a.min_p[r] > 0 ? a.min_p[r] : 0.0f;
  plan.u = philox_draw(a.seed[r], a.position[r], a.choice != nullptr ? a.choice[r] : 0);
  const long long n_top = a.n_top != nullptr ? a.n_top[r] : 0;
  const long long most = a.max_top < a.n ? a.max_top : a.n;
  plan.wants_logprob = a.logprob != nullptr && n_top >= 0;
  plan.n_top = !plan.wants_logprob ? 0 : n_top < most ? n_top : most;
  return plan;
}

// A row's span in a flat list.
struct Span {
  long long begin = 0, end = 0;
};

MILLRACE_SAMPLE_INLINE Span span_of(const int* begin, long long r) {
  return begin != nullptr ? Span{begin[r], begin[r + 1]} : Span{};
}

// What changes a row's logits before the draw.
struct Edits {
  Span said, biases;
  float repeat = 1, presence = 0, frequency = 0;
  const unsigned* mask = nullptr;

  MILLRACE_SAMPLE_INLINE bool any() const {
    return said.begin < said.end || biases.begin < biases.end || mask != nullptr;
  }
  MILLRACE_SAMPLE_INLINE bool allows(long long token) const {
    return mask == nullptr || (mask[token / 32] >> (token % 32) & 1) != 0;
  }
};

MILLRACE_SAMPLE_INLINE Edits edits_of(const Args& a, long long r) {
  Edits edits{.said = span_of(a.said_begin, r), .biases = span_of(a.bias_begin, r)};
  if (edits.said.begin < edits.said.end) {
    edits.repeat = a.repeat_penalty[r] > 0 ? a.repeat_penalty[r] : 1.0f;
    edits.presence = a.presence_penalty[r] == a.presence_penalty[r] ? a.presence_penalty[r] : 0.0f;
    edits.frequency =
        a.frequency_penalty[r] == a.frequency_penalty[r] ? a.frequency_penalty[r] : 0.0f;
  }
  if (a.mask != nullptr && a.mask_row[r] >= 0) edits.mask = a.mask + a.mask_row[r] * a.mask_words;
  return edits;
}

// What an edit made of a logit, as one that can be drawn from.
MILLRACE_SAMPLE_INLINE float usable(float y) {
  return y != y ? kNever : y < kMostFloat ? y : kMostFloat;
}

MILLRACE_SAMPLE_INLINE float penalised(float x, const Edits& e, int count) {
  const float y = x > 0 ? x / e.repeat : x * e.repeat;
  return usable(y - (static_cast<float>(count) * e.frequency + e.presence));
}

MILLRACE_SAMPLE_INLINE float biased(float x, float bias) {
  return bias <= kMostFloat ? usable(x + bias) : x;
}

// The tokens of [begin, end) that are one thread's: every `each`-th, from `first` on.
struct Owned {
  long long begin, end;
  int each = 1, first = 0;

  MILLRACE_SAMPLE_INLINE bool has(long long token) const {
    return token >= begin && token < end && (token - begin) % each == first;
  }
};

// Applies the lists to those of a row's logits that are mine; y holds them from mine.begin on. What
// the mask excludes stays as it is.
MILLRACE_SAMPLE_INLINE void apply_lists(const Args& a, const Edits& edits, const Owned& mine,
                                        float* y) {
  for (long long i = edits.said.begin; i < edits.said.end; ++i) {
    const long long token = a.said_token[i];
    if (!mine.has(token) || !edits.allows(token) || a.said_count[i] <= 0) continue;
    y[token - mine.begin] = penalised(y[token - mine.begin], edits, a.said_count[i]);
  }
  for (long long i = edits.biases.begin; i < edits.biases.end; ++i) {
    const long long token = a.bias_token[i];
    if (!mine.has(token) || !edits.allows(token)) continue;
    y[token - mine.begin] = biased(y[token - mine.begin], a.bias_value[i]);
  }
}

// The running sum over ranked candidates.
class Running {
 public:
  MILLRACE_SAMPLE_INLINE double add(float weight) {
    in_block_ += weight;
    const double sum = before_ + in_block_;
    if (++n_ % kBlock == 0) {
      before_ = sum;
      in_block_ = 0;
    }
    return sum;
  }
  MILLRACE_SAMPLE_INLINE double sum() const { return before_ + in_block_; }

 private:
  double before_ = 0, in_block_ = 0;
  long long n_ = 0;
};

// Row r's outputs as they are where nothing is drawn.
MILLRACE_SAMPLE_INLINE void put_nothing(const Args& a, long long r, int why) {
  constexpr float kNan = __builtin_nanf("");
  a.token[r] = why;
  if (a.logprob != nullptr) a.logprob[r] = kNan;
  for (long long j = r * a.max_top; j < (r + 1) * a.max_top; ++j) {
    a.top_token[j] = -1;
    a.top_logprob[j] = kNan;
  }
}

// Of a logit, given the row's largest and its mass at temperature 1.
MILLRACE_SAMPLE_INLINE float logprob_of(float x, float largest, double mass) {
  return (x - largest) - log(static_cast<float>(mass));
}

}  // namespace millrace::sample
