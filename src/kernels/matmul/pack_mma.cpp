#include "kernels/matmul/pack_mma.h"

#include <cstdint>

#include "kernels/matmul/tile.cuh"

namespace millrace::matmul {
namespace {

// Calls visit(output, k, index of the element in the packed weight) for every element of the tiles.
template <class Visit>
void for_each_element(const Args& a, Visit visit) {
  const long long n_tiles = (a.n + kTileM - 1) / kTileM, n_steps = a.k / kStepK;
  for (long long i = 0; i < n_tiles * n_steps * kTileM * kStepK; ++i) {
    const long long tile = i / (n_steps * kTileM * kStepK), step = i / (kTileM * kStepK) % n_steps;
    const auto lane = static_cast<int>(i / 8 % 32), element = static_cast<int>(i % 8);
    const int row = lane / 4 + element / 2 % 2 * 8;
    const int column = lane % 4 * 2 + element % 2 + element / 4 * 8;
    visit(tile * kTileM + row, step * kStepK + column, i);
  }
}

}  // namespace

size_t mma16_bytes(const Args& a) {
  return static_cast<size_t>((a.n + kTileM - 1) / kTileM * kTileM * a.k) * sizeof(uint16_t);
}

void pack_mma16(const Args& a, const void* plain, void* packed) {
  const auto* from = static_cast<const uint16_t*>(plain);
  auto* to = static_cast<uint16_t*>(packed);
  for_each_element(a, [&](long long o, long long k, long long i) {
    to[i] = o < a.n ? from[o * a.k + k] : uint16_t{0};
  });
}

void unpack_mma16(const Args& a, const void* packed, void* plain) {
  const auto* from = static_cast<const uint16_t*>(packed);
  auto* to = static_cast<uint16_t*>(plain);
  for_each_element(a, [&](long long o, long long k, long long i) {
    if (o < a.n) to[o * a.k + k] = from[i];
  });
}

}  // namespace millrace::matmul
