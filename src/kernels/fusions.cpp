#include <array>

#include "kernels/attention_input/op.h"
#include "kernels/fusion.h"
#include "kernels/gated_input/op.h"
#include "kernels/matmul_add/op.h"

namespace millrace {

std::span<const Fusion* const> fusions() {
  static constexpr std::array kFusions = {
      &attention_input::kWithHeadNorms,  //
      &attention_input::kFusion,         //
      &gated_input::kFusion,             //
      &matmul_add::kFusion,              //
  };
  return kFusions;
}

bool overlap(const void* a, long long a_bytes, const void* b, long long b_bytes) {
  const auto* x = static_cast<const std::byte*>(a);
  const auto* y = static_cast<const std::byte*>(b);
  return x < y + b_bytes && y < x + a_bytes;
}

}  // namespace millrace
