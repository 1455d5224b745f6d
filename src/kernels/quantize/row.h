// DType::q8_row: how a row of int8 activations lies in memory. A row of k values (k a multiple of
// 32) is three arrays one after the other: int8 q[k], f32 scale[k / 32], i32 sum[k / 32], where sum
// is that of the block's 32 q. Value i is scale[i / 32] * q[i]. 40 bytes a block; -127 <= q <= 127.
#pragma once

namespace millrace::quantize {

inline constexpr int kBlock = 32;

struct Row {
  const signed char* q;
  const float* scale;
  const int* sum;
};

struct MutableRow {
  signed char* q;
  float* scale;
  int* sum;
};

constexpr long long row_bytes(long long k) {
  return k / kBlock * 40;
}

inline MutableRow mutable_row_at(void* rows, long long k, long long r) {
  char* base = static_cast<char*>(rows) + r * row_bytes(k);
  return {reinterpret_cast<signed char*>(base), reinterpret_cast<float*>(base + k),
          reinterpret_cast<int*>(base + k + k / kBlock * 4)};
}

inline Row row_at(const void* rows, long long k, long long r) {
  const MutableRow row = mutable_row_at(const_cast<void*>(rows), k, r);
  return {row.q, row.scale, row.sum};
}

}  // namespace millrace::quantize
