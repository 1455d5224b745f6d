#pragma once

namespace millrace::sample {

// What `token` says where no token was drawn.
inline constexpr int kNoneAllowed = -1;  // mask, biases and penalties leave nothing to draw
inline constexpr int kNotFinite = -2;    // the logits hold a NaN or +Inf, or nothing but -Inf

// The most that max_top may be.
inline constexpr int kMaxTop = 256;

// One token per row, drawn from its logits by its own parameters. An array has n_rows entries
// unless it says otherwise. Any parameter is safe: nonsense switches its rule off, and entries of
// the sparse lists whose token lies outside [0, n) are passed over. Only the indices (logits_row,
// said_begin, bias_begin, mask_row) are trusted. The inputs are never written.
struct Args {
  const float* logits = nullptr;    // f32 [any][n], rows contiguous
  const int* logits_row = nullptr;  // which row of logits row r draws from; null: row r

  const float* temperature = nullptr;  // not above 0: greedy
  const int* top_k = nullptr;          // draw among the top_k first; off outside 1 to n - 1
  const float* top_p = nullptr;        // and the fewest of these that hold this share; off from 1
  const float* min_p = nullptr;        // and at least this share of the first's; off from 0 down
  const unsigned long long* seed = nullptr;      // of the request
  const unsigned long long* position = nullptr;  // of the token in its sequence
  const unsigned* choice = nullptr;              // which of the request's completions; null: 0

  // What was said, as row r's entries [said_begin[r], said_begin[r + 1]) of said_token and
  // said_count, each token once. Null said_begin: nothing, and the penalties may be null.
  const int* said_begin = nullptr;           // i32 [n_rows + 1]
  const int* said_token = nullptr;           // i32 [said_begin[n_rows]]
  const int* said_count = nullptr;           // i32, how often; not above 0: passed over
  const float* repeat_penalty = nullptr;     // divides a logit above 0, multiplies another
  const float* presence_penalty = nullptr;   // is subtracted once
  const float* frequency_penalty = nullptr;  // is subtracted `count` times

  // What is added to logits, in the same form. Null bias_begin: nothing.
  const int* bias_begin = nullptr;    // i32 [n_rows + 1]
  const int* bias_token = nullptr;    // i32 [bias_begin[n_rows]]
  const float* bias_value = nullptr;  // f32; -Inf: never drawn; NaN and +Inf: passed over

  // Bit i % 32 of word i / 32 is token i's; cleared: never drawn. Null mask: none.
  const unsigned* mask = nullptr;  // u32 [any][mask_words]
  const int* mask_row = nullptr;   // the row's own in mask; negative: it has none
  long long mask_words = 0;        // at least n / 32, rounded up

  int* token = nullptr;      // i32 [n_rows]: in [0, n), or kNoneAllowed or kNotFinite
  float* logprob = nullptr;  // f32 [n_rows]: of the token under softmax(logits); null: not wanted

  // The most likely tokens under softmax(logits), n_top[r] of them; past these -1 and NaN. A
  // negative n_top[r] says that the row wants no log-probability either, and its logprob is NaN.
  const int* n_top = nullptr;    // null: 0
  int* top_token = nullptr;      // i32 [n_rows][max_top]
  float* top_logprob = nullptr;  // f32 [n_rows][max_top]
  long long max_top = 0;         // 0 to kMaxTop; above 0 only with logprob

  long long n_rows = 0;
  long long n = 0;  // below 2^31
};

}  // namespace millrace::sample
