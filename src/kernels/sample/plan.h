// One row's parameters, resolved: what the args' arrays mean for it. Shared by all variants; the
// arithmetic of the class is in op.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/math.h"
#include "base/philox.h"
#include "kernels/sample/args.h"

namespace millrace::sample {

inline constexpr long long kBlock = 1024;
inline constexpr float kNever = -std::numeric_limits<float>::infinity();

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

  bool cuts() const { return limited || top_p < 1 || min_p > 0; }
};

// Any bits are safe here: what makes no sense (NaN, negative, out of range) switches its rule off.
inline Plan plan_of(const Args& a, long long r) {
  Plan plan;
  plan.logits = a.logits + (a.logits_row != nullptr ? a.logits_row[r] : r) * a.n;
  plan.scale = 1.0f / a.temperature[r];
  plan.greedy = !(a.temperature[r] > 0) || !std::isfinite(plan.scale) || plan.scale == 0;
  plan.limited = a.top_k[r] >= 1 && a.top_k[r] < a.n;
  plan.n_candidates = plan.limited ? a.top_k[r] : a.n;
  plan.top_p = a.top_p[r] < 1 ? a.top_p[r] : 1.0f;
  plan.min_p = a.min_p[r] > 0 ? a.min_p[r] : 0.0f;
  plan.u = philox_uniform(a.seed[r], a.position[r], a.choice != nullptr ? a.choice[r] : 0);
  const long long n_top = a.n_top != nullptr ? a.n_top[r] : 0;
  plan.wants_logprob = a.logprob != nullptr && n_top >= 0;
  plan.n_top = plan.wants_logprob ? std::min({n_top, a.max_top, a.n}) : 0;
  return plan;
}

// A row's span in a flat list.
struct Span {
  long long begin = 0, end = 0;
};

inline Span span_of(const int* begin, long long r) {
  return begin != nullptr ? Span{begin[r], begin[r + 1]} : Span{};
}

// What changes a row's logits before the draw.
struct Edits {
  Span said, biases;
  float repeat = 1, presence = 0, frequency = 0;
  const unsigned* mask = nullptr;

  bool any() const { return said.begin < said.end || biases.begin < biases.end || mask != nullptr; }
  bool allows(long long token) const {
    return mask == nullptr || (mask[token / 32] >> (token % 32) & 1) != 0;
  }
};

inline Edits edits_of(const Args& a, long long r) {
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
inline float usable(float y) {
  return y == y ? std::min(y, std::numeric_limits<float>::max()) : kNever;
}

inline float penalised(float x, const Edits& e, int count) {
  const float y = x > 0 ? x / e.repeat : x * e.repeat;
  return usable(y - (static_cast<float>(count) * e.frequency + e.presence));
}

inline float biased(float x, float bias) {
  return bias <= std::numeric_limits<float>::max() ? usable(x + bias) : x;
}

// Applies the lists to the part of a row's logits that lies at y. What the mask excludes stays as
// it is.
inline void apply_lists(const Args& a, const Edits& edits, Span part, float* y) {
  const auto is_mine = [&](long long token) {
    return token >= part.begin && token < part.end && edits.allows(token);
  };
  for (long long i = edits.said.begin; i < edits.said.end; ++i) {
    if (!is_mine(a.said_token[i]) || a.said_count[i] <= 0) continue;
    float& at = y[a.said_token[i] - part.begin];
    at = penalised(at, edits, a.said_count[i]);
  }
  for (long long i = edits.biases.begin; i < edits.biases.end; ++i) {
    if (!is_mine(a.bias_token[i])) continue;
    float& at = y[a.bias_token[i] - part.begin];
    at = biased(at, a.bias_value[i]);
  }
}

// The running sum over ranked candidates.
class Running {
 public:
  double add(float weight) {
    in_block_ += weight;
    const double sum = before_ + in_block_;
    if (++n_ % kBlock == 0) {
      before_ = sum;
      in_block_ = 0;
    }
    return sum;
  }
  double sum() const { return before_ + in_block_; }

 private:
  double before_ = 0, in_block_ = 0;
  long long n_ = 0;
};

// Row r's outputs as they are where nothing is drawn.
inline void put_nothing(const Args& a, long long r, int why) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  a.token[r] = why;
  if (a.logprob != nullptr) a.logprob[r] = kNan;
  std::fill_n(a.top_token + r * a.max_top, a.max_top, -1);
  std::fill_n(a.top_logprob + r * a.max_top, a.max_top, kNan);
}

// Of a logit, given the row's largest and its mass at temperature 1.
inline float logprob_of(float x, float largest, double mass) {
  return (x - largest) - math::log(static_cast<float>(mass));
}

}  // namespace millrace::sample
