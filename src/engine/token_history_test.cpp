#include "engine/token_history.h"

#include <gtest/gtest.h>

#include <map>

#include "base/philox.h"
#include "machine/count_allocations_test.h"

namespace millrace {
namespace {

using Counts = std::map<int32_t, int32_t>;

Counts counts_of(const TokenHistory& history) {
  Counts out;
  for (size_t i = 0; i < history.tokens().size(); ++i)
    EXPECT_TRUE(out.emplace(history.tokens()[i], history.counts()[i]).second) << "twice";
  return out;
}

Counts counts_of(std::span<const int32_t> tokens, int64_t window) {
  if (window >= 0 && tokens.size() > static_cast<size_t>(window))
    tokens = tokens.last(static_cast<size_t>(window));
  Counts out;
  for (const int32_t token : tokens) ++out[token];
  return out;
}

TEST(TokenHistory, counts_what_its_window_holds) {
  Rng rng(3);
  for (const int64_t window : {-1, 0, 1, 2, 7, 64, 100000}) {
    TokenHistory history(window);
    std::vector<int32_t> all;
    for (int i = 0; i < 3000; ++i) {
      all.push_back(static_cast<int32_t>(rng.below(i % 2 == 0 ? 40 : 100000)));
      history.push(all.back());
      if (i % 100 != 7) continue;
      EXPECT_EQ(counts_of(history), counts_of(all, window)) << "window " << window << " at " << i;
    }
  }
}

TEST(TokenHistory, starts_over) {
  TokenHistory history(3);
  history.assign(std::vector<int32_t>{9, 9, 9, 9});
  history.assign(std::vector<int32_t>{1, 2, 2, 3});
  EXPECT_EQ(counts_of(history), (Counts{{2, 2}, {3, 1}}));
  history.push(1);
  EXPECT_EQ(counts_of(history), (Counts{{2, 1}, {3, 1}, {1, 1}}));
}

TEST(TokenHistory, takes_any_token) {
  TokenHistory history(2);
  for (const int32_t token : {-1, INT32_MAX, INT32_MIN, 0, -1}) history.push(token);
  EXPECT_EQ(counts_of(history), (Counts{{0, 1}, {-1, 1}}));
}

TEST(TokenHistory, allocates_nothing_once_warm) {
  TokenHistory history(64);
  for (int32_t i = 0; i < 1000; ++i) history.push(i);
  const int64_t before = n_allocations();
  for (int32_t i = 0; i < 10000; ++i) history.push(i * 37 % 991);
  EXPECT_EQ(n_allocations(), before);
}

}  // namespace
}  // namespace millrace
