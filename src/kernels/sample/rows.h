// What the vector variants share: everything but the passes over the vocabulary. Rows go to lanes
// in whole rounds; the rows that remain, fewer than lanes, are cut into blocks of 1,024 entries
// which all lanes share:
//   survey: each lane, of its blocks: are the logits finite, what is the largest; the edits; the
//           first few candidates
//   weigh:  each lane, of its blocks: the sums of exponentials
//   finish: one lane per row: adds the sums up, merges the candidates, draws
// with a barrier after each of the first two. Every sum is one block's, so who made it does not
// show.
#pragma once

#include "kernels/kernel.h"
#include "kernels/sample/args.h"

namespace millrace::sample {

// The largest of some logits, and whether one of them is NaN or +Inf; the largest is then anything.
struct Survey {
  float largest;
  bool is_bad;
};

// A variant's passes over entries of a row that begin with a block.
struct Passes {
  Survey (*survey)(const float* x, long long n);
  // y = x, or -Inf where the mask's bit is cleared.
  void (*allow)(const float* x, const unsigned* mask, float* y, long long n);
  // sums[b] = the sum of exp((x - largest) * scale) over block b, in the class's order.
  void (*weigh)(const float* x, long long n, float largest, float scale, double* sums);
  // x = exp((x - largest) * scale); any entries.
  void (*soften)(float* x, long long n, float largest, float scale);
};

size_t rows_workspace_bytes(const Args& args, int n_lanes);
Status run_rows(const Args& args, Exec& exec, const Passes& passes);

}  // namespace millrace::sample
