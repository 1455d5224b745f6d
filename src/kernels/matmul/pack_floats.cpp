#include "kernels/matmul/pack_floats.h"

#include <cstdint>
#include <cstring>

#include "tensor/format.h"

namespace millrace::matmul {
namespace {

// Calls move(element of a row-major [n][k], element of the tiles) for every weight.
template <class Move>
void for_each_weight(const Args& a, Move move) {
  for (long long o = 0; o < a.n; ++o)
    for (long long i = 0; i < a.k; ++i)
      move(o * a.k + i, (o / kFloatTile * a.k + i) * kFloatTile + o % kFloatTile);
}

template <class T>
void pack(const Args& a, const void* plain, void* packed) {
  const auto* from = static_cast<const T*>(plain);
  auto* to = static_cast<T*>(packed);
  for_each_weight(a, [&](long long file, long long tiled) { to[tiled] = from[file]; });
}

template <class T>
void unpack(const Args& a, const void* packed, void* plain) {
  const auto* from = static_cast<const T*>(packed);
  auto* to = static_cast<T*>(plain);
  for_each_weight(a, [&](long long file, long long tiled) { to[file] = from[tiled]; });
}

}  // namespace

size_t floats_bytes(const Args& a) {
  return bytes_of(a.w_type, (a.n + kFloatTile - 1) / kFloatTile * kFloatTile * a.k);
}

void pack_floats(const Args& a, const void* plain, void* packed) {
  std::memset(packed, 0, floats_bytes(a));
  if (a.w_type == DType::f32) return pack<uint32_t>(a, plain, packed);
  pack<uint16_t>(a, plain, packed);
}

void unpack_floats(const Args& a, const void* packed, void* plain) {
  if (a.w_type == DType::f32) return unpack<uint32_t>(a, packed, plain);
  unpack<uint16_t>(a, packed, plain);
}

}  // namespace millrace::matmul
