// Top-k of one row, for kernels that select as a part of their work (sample). The result is
// topk's: see op.h.
#pragma once

#include <cstdint>

namespace millrace::topk {

struct Row {
  const float* x;  // [n]
  long long n;
  long long k;    // 1 to n
  float* values;  // [k]
  int* indices;   // [k]
};

namespace avx2 {
// Words of 4 bytes that select_row needs, 8-byte aligned; and for any k up to this one.
long long scratch_words(long long n, long long k);
long long scratch_words_up_to(long long n, long long k);
void select_row(const Row& row, int32_t* scratch);
}  // namespace avx2

}  // namespace millrace::topk
