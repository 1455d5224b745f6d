#pragma once

#include "tensor/dtype.h"

namespace millrace::kv_store {

enum class Stored : unsigned char { both, keys, values };

// Rounds the K and V rows of new tokens to the cache's type and writes them into its pages. The
// layout of a page is kernels/attention's (its args.h).
struct Args {
  const void* k;     // x_type [n_rows][n_kv_heads][head_dim], rows x_stride elements apart; unread
                     // where values alone are stored
  const void* v;     // as k; unread where keys alone are
  const int* slots;  // i32 [n_rows]: page * page_tokens + place in the page, each named once at
                     // most; negative: a row of padding, not stored
  void* k_pages;     // kv_type [n_pages][n_kv_heads][head_dim][page_tokens], pages page_stride
  void* v_pages;     // kv_type [n_pages][n_kv_heads][page_tokens][head_dim]  elements apart
  long long n_rows;
  long long n_kv_heads;
  long long head_dim;
  long long x_stride;  // at least n_kv_heads * head_dim
  long long n_pages;
  long long page_tokens;
  long long page_stride;  // at least n_kv_heads * head_dim * page_tokens, a multiple of 64 bytes
  DType x_type;           // f32 or bf16
  DType kv_type;          // f32, f16 or bf16
  Stored what;
};

}  // namespace millrace::kv_store
