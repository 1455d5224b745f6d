// How a finished f32 sum becomes an element of y: the last step of both CPU classes.
#pragma once

#include <bit>
#include <cstdint>

#include "base/small_float.h"
#include "kernels/matmul/args.h"

namespace millrace::matmul {

inline constexpr uint32_t kNanBits = 0x7fc00000u;  // what every NaN is stored as

inline void store_output(const Args& a, long long row, long long output, float sum) {
  const float value = sum != sum ? std::bit_cast<float>(kNanBits) : sum;
  const long long at = row * a.n + output;
  if (a.y_type == DType::f32)
    static_cast<float*>(a.y)[at] = value;
  else
    static_cast<uint16_t*>(a.y)[at] = f32_to_bf16(value);
}

}  // namespace millrace::matmul
