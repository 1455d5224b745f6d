// From logits to tokens, for many requests at once: gathers each row's parameters, penalties,
// biases and mask into the arrays of kernels/sample, makes a Program that draws as a part of the
// step, and hands out what it drew. A row's result is a pure function of its logits, parameters,
// history and position, so that a request gives the same tokens alone, among others and after a
// restart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/token_history.h"
#include "exec/device.h"
#include "kernels/pick.h"
#include "kernels/sample/args.h"
#include "memory/device.h"

namespace millrace {

struct TokenBias {
  int32_t token;
  float value;  // added to the token's logit
};

// How a request draws its tokens.
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
  bool logprob = false;  // report each token's log-probability; n_logprobs above 0 does too
  int n_logprobs = 0;    // how many of the most likely tokens to report with each
  std::vector<TokenBias> biases{};

  bool penalises() const {
    return repeat_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
  bool wants_logprob() const { return logprob || n_logprobs > 0; }
};

// What a request may not ask for; biases must be of tokens below n_vocab.
Status validate(const Sampling& sampling, int64_t n_vocab = INT32_MAX);

struct TokenLogprob {
  int32_t token;
  float logprob;
};

enum class Draw : unsigned char {
  token,
  none_allowed,  // mask, biases and penalties left no token
  not_finite,    // the logits hold a NaN or +Inf, or nothing but -Inf
};

struct Sampled {
  Draw draw = Draw::token;
  int32_t token = 0;  // -1 when none was drawn
  float logprob = 0;  // where asked for: under the logits as the model gave them
  std::vector<TokenLogprob> most_likely;  // n_logprobs of them
};

// Ok for a token; else the error that ends the request.
Status status_of(const Sampled& sampled, uint64_t position);

// One token to draw. What it refers to must live until the call is over.
struct SampleRow {
  int logits_row = 0;  // of the step; several may draw from the same
  const Sampling& how;
  const TokenHistory& history;  // of the sequence, made with how.penalty_tokens
  uint64_t position = 0;        // of the token in its sequence
  uint32_t choice = 0;          // which of the request's completions; they may share their logits
  // Bit i % 32 of word i / 32 says whether token i is allowed; tokens past its end are not. Empty:
  // all are.
  std::span<const uint32_t> mask{};
};

class Sampler {
 public:
  // The device must outlive it.
  static Result<Sampler> make(int64_t n_vocab, const PickFrom& from, Device& device);

  // What draws a token for each row, once the logits are there: [any][n_vocab] on the device. It
  // is to be run before the next call, and the device waited for. Allocates nothing once it has
  // seen as many rows, penalties and biases.
  Result<Program*> gather(const float* logits, std::span<const SampleRow> rows);
  // What was drawn. A row that cannot be drawn from says so in its own Sampled. Allocates nothing
  // once `out` has had as many log-probabilities.
  void take(std::span<Sampled> out) const;

 private:
  // What args_ points to, or has a copy of.
  struct Arrays {
    std::vector<float> temperature, top_p, min_p, repeat, presence, frequency;
    std::vector<int> logits_row, top_k;
    std::vector<unsigned long long> seed, position;
    std::vector<unsigned> choice;
    std::vector<int> said_begin, said_token, said_count;
    std::vector<int> bias_begin, bias_token;
    std::vector<float> bias_value;
    std::vector<unsigned> mask;
    std::vector<int> mask_row;
    std::vector<int> n_top;
    std::vector<int> token, top_token;
    std::vector<float> logprob, top_logprob;

    void clear();
    void add(const SampleRow& row, size_t mask_words);
    void add_edits(const SampleRow& row, size_t mask_words);
    void size_outputs(size_t n_rows, size_t max_top);
  };
  // Memory that a GPU and this program both see, or its copy on the GPU.
  struct Shared {
    PinnedBuffer host;
    DeviceMemory device;
  };

  explicit Sampler(Device& device) : device_(&device) {}
  // Calls see(array, field of args_ that points to it) for each.
  template <class See>
  void each_input(See&& see);
  template <class See>
  void each_output(See&& see);
  void bind();
  Status bind_on_gpu();
  Status prepare();

  Device* device_;
  int64_t n_vocab_ = 0;
  Arrays arrays_;
  Shared inputs_, outputs_;  // of a GPU
  sample::Args args_;
  Program program_;
};

// The n most likely tokens and their log-probabilities.
std::vector<TokenLogprob> most_likely(std::span<const float> logits, int n);
// log(sum(exp(logits))), in f64.
double log_sum_exp(std::span<const float> logits);

}  // namespace millrace
