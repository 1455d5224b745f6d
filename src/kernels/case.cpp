#include "kernels/case.h"

#include <cstring>
#include <limits>

#include "tensor/element.h"
#include "tensor/format.h"

namespace millrace {
namespace {

float hostile_value(Rng& rng) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  switch (rng.below(24)) {
    case 0:
      return std::numeric_limits<float>::quiet_NaN();
    case 1:
      return kInf;
    case 2:
      return -kInf;
    case 3:
      return 0.0f;
    case 4:
      return -0.0f;
    case 5:
      return 0x1p-149f;  // least denormal
    case 6:
      return -0x1p-130f;  // denormal
    case 7:
      return 3e38f;
    default:
      return rng.normal();
  }
}

}  // namespace

size_t bytes_of(const Port& port) {
  return bytes_of(port.type, port.elems);
}

Fill fill_normal(DType type, int64_t elems, float stddev) {
  return [=](Rng& rng, void* dst) {
    for (int64_t i = 0; i < elems; ++i) store_element(type, dst, i, stddev * rng.normal());
  };
}

Fill fill_uniform(DType type, int64_t elems, float lo, float hi) {
  return [=](Rng& rng, void* dst) {
    for (int64_t i = 0; i < elems; ++i) store_element(type, dst, i, rng.uniform(lo, hi));
  };
}

Fill fill_hostile(DType type, int64_t elems) {
  return [=](Rng& rng, void* dst) {
    for (int64_t i = 0; i < elems; ++i) store_element(type, dst, i, hostile_value(rng));
  };
}

Fill fill_index(int64_t elems, int64_t below) {
  return [=](Rng& rng, void* dst) {
    auto* out = static_cast<int32_t*>(dst);
    for (int64_t i = 0; i < elems; ++i)
      out[i] = static_cast<int32_t>(rng.below(static_cast<uint64_t>(below)));
  };
}

Fill fill_zero(size_t bytes) {
  return [=](Rng&, void* dst) { std::memset(dst, 0, bytes); };
}

}  // namespace millrace
