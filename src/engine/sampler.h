// From logits to a token: penalties over what was said, then the draw of kernels/sample. A pure
// function of the row, the tokens before it, the parameters and the position, so that a request
// gives the same tokens alone, among others and after a restart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "kernels/pick.h"
#include "memory/host.h"

namespace millrace {

struct Sampling {
  float temperature = 0.8f;  // 0: the most likely token
  int top_k = 40;            // 0: off
  float top_p = 0.95f;       // 1: off
  float min_p = 0.05f;       // 0: off
  float repeat_penalty = 1;  // divides positive logits of what was said, multiplies negative ones
  float presence_penalty = 0;
  float frequency_penalty = 0;
  int penalty_tokens = 64;  // how far back the penalties look; -1: to the start
  uint64_t seed = 0;
  int n_logprobs = 0;  // how many of the most likely tokens to report with each
};

Status validate(const Sampling& sampling);

struct TokenLogprob {
  int32_t token;
  float logprob;
};

struct Sampled {
  int32_t token = 0;
  float logprob = 0;                      // under the logits as the model gave them
  std::vector<TokenLogprob> most_likely;  // n_logprobs of them
};

class Sampler {
 public:
  static Result<Sampler> make(int64_t n_vocab, const PickFrom& from);

  // `logits` is overwritten where penalties apply; `before` is the whole sequence.
  Result<Sampled> sample(std::span<float> logits, std::span<const int32_t> before,
                         const Sampling& sampling);

 private:
  void penalise(std::span<float> logits, std::span<const int32_t> before, const Sampling& s);

  const Variant* variant_ = nullptr;
  HostBuffer workspace_;
  std::vector<int32_t> counts_;  // [n_vocab], all 0 between calls
};

// The n most likely tokens and their log-probabilities.
std::vector<TokenLogprob> most_likely(std::span<const float> logits, int n);
// log(sum(exp(logits))), in f64.
double log_sum_exp(std::span<const float> logits);

}  // namespace millrace
