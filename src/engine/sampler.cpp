#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "kernels/sample/op.h"

namespace millrace {
namespace {

sample::Args args_of(std::span<float> logits, const Sampling& s, const unsigned long long* seed,
                     const unsigned long long* position, Sampled& out) {
  return {.logits = logits.data(),
          .temperature = &s.temperature,
          .top_k = &s.top_k,
          .top_p = &s.top_p,
          .min_p = &s.min_p,
          .seed = seed,
          .position = position,
          .token = &out.token,
          .logprob = nullptr,
          .n_rows = 1,
          .n = static_cast<long long>(logits.size())};
}

Status in_range(const char* what, float value, float least, float most) {
  if (value >= least && value <= most) return {};
  return error(Code::invalid_argument, "{} is {}, outside {} to {}", what, value, least, most);
}

}  // namespace

Status validate(const Sampling& s) {
  MILLRACE_TRY(in_range("temperature", s.temperature, 0, 100));
  MILLRACE_TRY(in_range("top-p", s.top_p, 0, 1));
  MILLRACE_TRY(in_range("min-p", s.min_p, 0, 1));
  MILLRACE_TRY(in_range("repeat penalty", s.repeat_penalty, 1e-3f, 1e3f));
  MILLRACE_TRY(in_range("presence penalty", s.presence_penalty, -100, 100));
  MILLRACE_TRY(in_range("frequency penalty", s.frequency_penalty, -100, 100));
  if (s.top_k < 0) return error(Code::invalid_argument, "top-k is {}, below 0", s.top_k);
  if (s.n_logprobs < 0 || s.n_logprobs > 100)
    return error(Code::invalid_argument, "{} log-probabilities, outside 0 to 100", s.n_logprobs);
  return {};
}

double log_sum_exp(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - top);
  return top + std::log(sum);
}

std::vector<TokenLogprob> most_likely(std::span<const float> logits, int n) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto kept = std::min<size_t>(static_cast<size_t>(n), order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(kept), order.end(),
                    [&](int32_t a, int32_t b) {
                      const float x = logits[static_cast<size_t>(a)];
                      const float y = logits[static_cast<size_t>(b)];
                      return x > y || (x == y && a < b);
                    });
  const double total = log_sum_exp(logits);
  std::vector<TokenLogprob> out;
  for (size_t i = 0; i < kept; ++i)
    out.push_back({order[i], static_cast<float>(logits[static_cast<size_t>(order[i])] - total)});
  return out;
}

Result<Sampler> Sampler::make(int64_t n_vocab, const PickFrom& from) {
  Sampler out;
  out.counts_.assign(static_cast<size_t>(n_vocab), 0);
  const Sampling any;
  const unsigned long long zero = 0;
  Sampled sampled;
  std::vector<float> logits(static_cast<size_t>(n_vocab));
  const sample::Args args = args_of(logits, any, &zero, &zero, sampled);
  MILLRACE_TRY(sample::validate(args));
  MILLRACE_ASSIGN(const Choice choice, pick(sample::kOp, &args, from));
  out.variant_ = choice.variant;
  if (choice.variant->workspace_bytes != nullptr) {
    MILLRACE_ASSIGN(out.workspace_, HostBuffer::make(choice.variant->workspace_bytes(&args, 1)));
  }
  return out;
}

void Sampler::penalise(std::span<float> logits, std::span<const int32_t> before,
                       const Sampling& s) {
  if (s.repeat_penalty == 1 && s.presence_penalty == 0 && s.frequency_penalty == 0) return;
  if (s.penalty_tokens >= 0 && before.size() > static_cast<size_t>(s.penalty_tokens))
    before = before.last(static_cast<size_t>(s.penalty_tokens));
  for (const int32_t token : before) ++counts_[static_cast<size_t>(token)];
  for (const int32_t token : before) {
    const int count = std::exchange(counts_[static_cast<size_t>(token)], 0);
    if (count == 0) continue;
    float& x = logits[static_cast<size_t>(token)];
    x = x > 0 ? x / s.repeat_penalty : x * s.repeat_penalty;
    x -= static_cast<float>(count) * s.frequency_penalty + s.presence_penalty;
  }
}

Result<Sampled> Sampler::sample(std::span<float> logits, std::span<const int32_t> before,
                                const Sampling& sampling) {
  Sampled out;
  double total = 0;
  std::vector<float> given;
  if (sampling.n_logprobs > 0) {
    given.assign(logits.begin(), logits.end());
    total = log_sum_exp(given);
    out.most_likely = most_likely(given, sampling.n_logprobs);
  }
  penalise(logits, before, sampling);
  const unsigned long long seed = sampling.seed, position = before.size();
  const sample::Args args = args_of(logits, sampling, &seed, &position, out);
  Exec exec{.workspace = workspace_.data(), .workspace_bytes = workspace_.bytes()};
  MILLRACE_TRY(variant_->run(&args, exec));
  if (!given.empty())
    out.logprob = static_cast<float>(given[static_cast<size_t>(out.token)] - total);
  return out;
}

}  // namespace millrace
