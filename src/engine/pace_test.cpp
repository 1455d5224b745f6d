#include "engine/pace.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

Config config() {
  Config out;
  out.n_embd = 576, out.n_heads = 9, out.n_kv_heads = 3, out.head_dim = 64, out.n_ff = 1536;
  return out;
}

TEST(Pace, a_row_costs_more_after_a_long_context) {
  const Pace pace(config());
  EXPECT_DOUBLE_EQ(pace.work(0), 1);
  EXPECT_NEAR(pace.work(1900), 2, 0.1);
  EXPECT_NEAR(pace.work(0, 1000), 1000 * pace.work(500), 1e-6);
}

TEST(Pace, what_fits_is_as_much_as_fits) {
  const Pace pace(config());
  for (const int64_t position : {0, 1000, 50000})
    for (const int64_t n : {1, 7, 64, 500})
      for (const double work : {0.0, 0.5, 1.0, 3.5, 64.0, 1e9}) {
        const int64_t fits = pace.fitting(position, n, work);
        EXPECT_TRUE(fits == 0 || pace.work(position, fits) <= work);
        EXPECT_TRUE(fits == n || pace.work(position, fits + 1) > work) << position << ' ' << n;
      }
}

TEST(Pace, learns_from_what_steps_took) {
  Pace pace(config());
  EXPECT_GT(pace.work_in(0.15), 16);
  for (int i = 0; i < 50; ++i) pace.learn(100, 0.2);
  EXPECT_NEAR(pace.work_in(0.15), 75, 1);
}

}  // namespace
}  // namespace millrace
