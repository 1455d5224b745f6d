#include "engine/pace.h"

#include <algorithm>

namespace millrace {
namespace {

// A product's multiply-adds are in int8 or on tensor cores, attention's in wider types. Measured
// (SmolLM2, 2 vCPUs of a Zen 4 EPYC): attention takes as long as the products after some 1,900
// tokens, not after 3,000.
constexpr double kAttentionCost = 1.6;
constexpr double kLatest = 0.3;  // the last step's part in what is known
constexpr double kGuessed = 64;  // rows, until a step was measured

}  // namespace

Pace::Pace(const Config& config) {
  const auto heads = static_cast<double>(config.n_heads * config.head_dim);
  const auto kv_heads = static_cast<double>(config.n_kv_heads * config.head_dim);
  const auto width = static_cast<double>(config.n_embd);
  const auto n_parts = static_cast<double>(std::max<int64_t>(config.n_experts_used, 1));
  const double products =
      width * (2 * heads + 2 * kv_heads + 3 * n_parts * static_cast<double>(config.n_ff));
  context_rows_ = std::max(products / (2 * heads * kAttentionCost), 1.0);
  int64_t n_windowed = 0;
  for (int64_t layer = 0; layer < config.n_layers; ++layer)
    n_windowed += config.window_of(layer) > 0;
  window_ = config.window;
  if (config.n_layers > 0)
    windowed_ = static_cast<double>(n_windowed) / static_cast<double>(config.n_layers);
}

double Pace::work(int64_t position) const {
  const double seen = (1 - windowed_) * static_cast<double>(position) +
                      windowed_ * static_cast<double>(std::min(position, window_));
  return 1 + seen / context_rows_;
}

double Pace::work(int64_t position, int64_t n) const {
  return static_cast<double>(n) * work(position + n / 2);
}

int64_t Pace::fitting(int64_t position, int64_t n, double work) const {
  if (this->work(position, n) <= work) return n;
  int64_t fits = 0;
  for (int64_t half = n; half > 0; half = half == 1 ? 0 : (half + 1) / 2)
    if (fits + half <= n && this->work(position, fits + half) <= work) fits += half;
  return fits;
}

void Pace::learn(double work, double seconds) {
  const double now = seconds / std::max(work, 1.0);
  seconds_ = seconds_ == 0 ? now : (1 - kLatest) * seconds_ + kLatest * now;
}

double Pace::work_in(double seconds) const {
  return seconds_ == 0 ? kGuessed : seconds / seconds_;
}

}  // namespace millrace
