// The frequencies of a rotary embedding from a model's parameters: plain, linear scaling, YaRN
// (arXiv 2309.00071), and per-pair factors (the rope_freqs tensor of Llama 3). Computed once on the
// host in double.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace millrace::rope {

struct Scaling {
  double freq_base = 10000;
  double freq_scale = 1;  // 1 / factor: linear interpolation of positions, and YaRN's
  // YaRN: how much of the ramp between interpolated (1) and original frequencies to use; 0 is off.
  double ext_factor = 0;
  double attn_factor = 1;  // multiplies the magnitude
  double beta_fast = 32;   // turns over orig_ctx above which a pair keeps its frequency
  double beta_slow = 1;    // turns over orig_ctx below which a pair is fully interpolated
  int64_t orig_ctx = 0;    // context length of the training before scaling; YaRN alone needs it

  bool operator==(const Scaling&) const = default;
};

struct Frequencies {
  std::vector<unsigned long long> turns;  // [rot_dim / 2], for Args::turns
  float magnitude = 1;                    // for Args::magnitude
};

// `factors` divide the frequencies: empty, or one per pair.
Result<Frequencies> make_frequencies(int64_t rot_dim, const Scaling& scaling,
                                     std::span<const float> factors = {});

// Frequencies::magnitude alone.
float magnitude_of(const Scaling& scaling);

}  // namespace millrace::rope
