#include "kernels/rope/frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace millrace::rope {
namespace {

constexpr double kTau = 2 * std::numbers::pi;

// The (fractional) pair that makes `n_turns` turns over the original context.
double pair_of(double n_turns, int64_t rot_dim, const Scaling& s) {
  return static_cast<double>(rot_dim) *
         std::log(static_cast<double>(s.orig_ctx) / (n_turns * kTau)) / (2 * std::log(s.freq_base));
}

// The share of pair i's own frequency that YaRN keeps: 1 for fast pairs, 0 for slow ones.
double kept_share(int64_t i, int64_t rot_dim, const Scaling& s) {
  const double low = std::max(0.0, std::floor(pair_of(s.beta_fast, rot_dim, s)));
  const double high =
      std::min(static_cast<double>(rot_dim - 1), std::ceil(pair_of(s.beta_slow, rot_dim, s)));
  const double ramp = (static_cast<double>(i) - low) / std::max(0.001, high - low);
  return (1 - std::clamp(ramp, 0.0, 1.0)) * s.ext_factor;
}

// The fraction of a turn as a 64-bit binary fraction; whole turns mean nothing at whole positions.
unsigned long long binary_fraction(double turns) {
  const double fraction = turns - std::floor(turns);
  const double scaled = std::nearbyint(fraction * 0x1p64);
  return scaled >= 0x1p64 ? 0 : static_cast<unsigned long long>(scaled);
}

Status check(int64_t rot_dim, const Scaling& s, std::span<const float> factors) {
  if (rot_dim < 2 || rot_dim % 2 != 0)
    return error(Code::invalid_argument, "rope: rot_dim {} (even, at least 2)", rot_dim);
  if (!(s.freq_base > 1) || !(s.freq_scale > 0) || !std::isfinite(s.freq_base / s.freq_scale))
    return error(Code::invalid_argument, "rope: freq_base {}, freq_scale {}", s.freq_base,
                 s.freq_scale);
  if (s.ext_factor != 0 && (s.orig_ctx < 1 || !(s.beta_fast > 0) || !(s.beta_slow > 0)))
    return error(Code::invalid_argument, "rope: YaRN with orig_ctx {}, beta_fast {}, beta_slow {}",
                 s.orig_ctx, s.beta_fast, s.beta_slow);
  if (!factors.empty() && factors.size() != static_cast<size_t>(rot_dim / 2))
    return error(Code::invalid_argument, "rope: {} frequency factors for {} pairs", factors.size(),
                 rot_dim / 2);
  for (float factor : factors)
    if (!(factor > 0) || !std::isfinite(factor))
      return error(Code::invalid_argument, "rope: frequency factor {}", factor);
  return {};
}

}  // namespace

Result<Frequencies> make_frequencies(int64_t rot_dim, const Scaling& s,
                                     std::span<const float> factors) {
  MILLRACE_TRY(check(rot_dim, s, factors));
  Frequencies out;
  for (int64_t i = 0; i < rot_dim / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rot_dim);
    const double factor = factors.empty() ? 1.0 : factors[static_cast<size_t>(i)];
    const double own = std::pow(s.freq_base, exponent) / factor;
    const double share = s.ext_factor == 0 ? 0 : kept_share(i, rot_dim, s);
    out.turns.push_back(binary_fraction((s.freq_scale * own * (1 - share) + own * share) / kTau));
  }
  out.magnitude = magnitude_of(s);
  return out;
}

float magnitude_of(const Scaling& s) {
  const double yarn = s.ext_factor == 0 ? 1 : 1 - 0.1 * std::log(s.freq_scale);
  return static_cast<float>(s.attn_factor * yarn);
}

}  // namespace millrace::rope
