// The named problems of attention: decode, prefill and mixed batches, every page size, chunk edges,
// padding rows, windows, pages apart, unread garbage in pages and tables, hostile values, and the
// shapes of real models.
#pragma once

#include <vector>

#include "kernels/attention/floor.h"
#include "kernels/case.h"

namespace millrace::attention {

enum class Batch {
  decode,   // row r is the last token of sequence r % n_seqs
  prefill,  // the rows are neighbours of sequence 0, from position `first` on
  mixed,    // any sequence, any position from `first` on, some padding
  ends,     // of each sequence, the token at `first` and the last in turn
};

struct Problem {
  long long n_rows, n_heads, n_kv_heads, head_dim;
  long long ctx = 64;  // tokens of each sequence
  long long page_tokens = 64;
  long long n_seqs = 1;
  Batch batch = Batch::mixed;
  long long first = 0;
  DType q_type = DType::f32;
  DType kv_type = DType::f16;
  long long gap = 0;  // elements between rows of q that belong to nobody
  long long window = 0;
  long long page_gap = 0;  // elements between pages that belong to nobody
  bool hostile = false;
  bool timed = false;
  int n_shares = 0;            // of the list of work; 0: none
  long long n_records = 1000;  // that its workspace has room for
};

Case make_case(const Problem& problem);
std::vector<Case> cases();

}  // namespace millrace::attention
