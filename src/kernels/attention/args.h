#pragma once

#include "tensor/dtype.h"

namespace millrace::attention {

// How a device variant spreads a batch over blocks: a captured launch has a fixed grid, so what a
// batch asks for is data, made on the host for each batch (work.h) and uploaded with its inputs.
struct Spread {
  int* list = nullptr;      // i32 [list_ints()], 16-byte aligned; a call leaves it as it found it.
                            // Like tables, sequences and positions it is there before the step's
                            // first kernel starts: kernels read it before the one before them ends
  int n_shares = 0;         // blocks, each with a share of the work
  long long n_records = 0;  // room for results of chunks in the workspace, one a query vector
};

// Causal attention over a paged cache, prefill and decode alike. Query row r belongs to sequence
// sequences[r] at position p = positions[r] and sees that sequence's tokens 0 to p, with a window
// no more than the last `window` of them; token t is at place t % page_tokens of page
// tables[sequences[r]][t / page_tokens]. Query head h reads KV head h / (n_heads / n_kv_heads).
//   out[r][h] = sum_t softmax_t(scale * q[r][h] . k[t]) * v[t],  t over the tokens r sees
struct Args {
  const void* q;  // q_type [n_rows][n_heads][head_dim], rows q_stride elements apart; 16-byte
                  // aligned on a device
  // The cache, every page 64-byte aligned. A page holds its tokens by KV head: K as
  // [head_dim][page_tokens], V as [page_tokens][head_dim]. Places of tokens that no row sees may
  // hold anything, NaN included. Of a batch of up to 32 rows, a device reads what lies before the
  // first of a sequence's rows before the kernel ahead of it ends: earlier steps have stored it.
  const void* k_pages;   // kv_type [n_pages][n_kv_heads][head_dim][page_tokens], pages page_stride
  const void* v_pages;   // kv_type [n_pages][n_kv_heads][page_tokens][head_dim]  elements apart
  const int* tables;     // i32 [n_seqs][max_pages]: page ids; one of which no row sees a token is
                         // never read, and may be anything
  const int* sequences;  // i32 [n_rows], in [0, n_seqs)
  const int* positions;  // i32 [n_rows], below max_pages * page_tokens; negative: a row of padding,
                         // whose output is zeros
  void* out;             // q_type [n_rows][n_heads][head_dim], contiguous; overlaps nothing
  long long n_rows;
  long long n_heads;  // a multiple of n_kv_heads
  long long n_kv_heads;
  long long head_dim;  // 1 to 256
  long long q_stride;  // at least n_heads * head_dim
  long long n_pages;
  long long page_tokens;  // a power of two, 16 to 256: a page never straddles two chunks
  long long page_stride;  // at least n_kv_heads * head_dim * page_tokens, a multiple of 64 bytes
  long long n_seqs;
  long long max_pages;  // of one sequence
  long long window;     // 0: none; else a row at p sees tokens p - window + 1 to p
  float scale;          // above 0
  DType q_type;         // f32 or bf16
  DType kv_type;        // f16, bf16 or f32
  Spread work = {};     // of variants that walk a list; no others read it
};

}  // namespace millrace::attention
