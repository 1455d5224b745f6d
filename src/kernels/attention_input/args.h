#pragma once

#include "kernels/rope/args.h"
#include "tensor/dtype.h"

namespace millrace::attention_input {

// What attention reads, from the residual: q, k and v as products of norm(x), the heads of q and k
// normed (or not) and rotated, k and v stored in their pages, for few rows. rmsnorm, three
// products, rmsnorm of q and of k, rope of q and of k, kv_store; what they would have stored is
// rounded to bf16.
struct Args {
  const float* x;     // f32 [n_rows][embd], 16-byte aligned
  const float* norm;  // f32 [embd], 16-byte aligned
  const void* w[3];   // of q, k, v: w_type or v_type [heads * head_dim][embd] in layout mma16
  const float* head_norm[2];        // of q and k: f32 [head_dim]; null: none
  const unsigned long long* turns;  // as rope's
  const int* positions;             // i32 [n_rows]
  const int* slots;                 // as kv_store's
  void* q;                          // bf16 [n_rows][n_heads][head_dim]; overlaps none of the above
  void* k_pages;                    // bf16, as kv_store's
  void* v_pages;
  long long n_rows;
  long long embd;  // a multiple of 16; of its block where w_type has one
  long long n_heads;
  long long n_kv_heads;
  long long head_dim;  // 32, 64, 128 or 256; all of it turns
  long long n_pages;
  long long page_tokens;
  long long page_stride;
  float eps, head_eps, magnitude;
  rope::PairOrder order;
  DType w_type;  // of q and k: bf16, q8_0, q4_0, q4_k or q6_k
  DType v_type;  // the same; or q6_k beside q4_k
};

}  // namespace millrace::attention_input
