// How often each token stands among the last tokens of a sequence: what a request's penalties ask.
// It goes along with the sequence, a token at a time and in constant time, so that no step looks at
// the whole context; once its tables have grown to the window it allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

class TokenHistory {
 public:
  // window: how many tokens back it looks; negative: to the start.
  explicit TokenHistory(int64_t window = -1) : window_(window) {}

  // Starts over with these tokens, which are the whole sequence.
  void assign(std::span<const int32_t> tokens);
  void push(int32_t token);

  // The tokens of the window, each once and in no order, and how often each stands there.
  std::span<const int32_t> tokens() const { return tokens_; }
  std::span<const int32_t> counts() const { return counts_; }

 private:
  size_t home_of(int32_t token) const;
  size_t find(int32_t token) const;
  void add(int32_t token);
  void remove(int32_t token);
  void free_slot(size_t slot);
  void grow();

  static constexpr int32_t kFree = -1;

  int64_t window_;
  std::vector<int32_t> last_;  // the window, as a ring once it is full; unused without a window
  size_t oldest_ = 0;
  std::vector<int32_t> tokens_, counts_;
  std::vector<int32_t> slots_;  // places in tokens_ by hash: a power of two, at most half used
};

}  // namespace millrace
