#pragma once

namespace millrace::sample {

// One token per row, drawn from its logits by its own parameters. Every array has n_rows entries.
struct Args {
  const float* logits;             // f32 [n_rows][n], rows contiguous; -Inf and NaN: never drawn
  const float* temperature;        // not above 0: greedy
  const int* top_k;                // draw among the top_k first; off outside 1 to n - 1
  const float* top_p;              // and the fewest of these that hold this share; off from 1 up
  const float* min_p;              // and at least this share of the first's; off from 0 down
  const unsigned long long* seed;  // of the request
  const unsigned long long* position;  // of the token in its sequence
  int* token;                          // i32 [n_rows], each in [0, n)
  float* logprob;  // f32 [n_rows]: of the token under softmax(logits); null: not wanted
  long long n_rows;
  long long n;  // below 2^31
};

}  // namespace millrace::sample
