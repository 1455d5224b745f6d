#include "serve/metrics.h"

#include <gtest/gtest.h>

namespace millrace::serve {
namespace {

TEST(Metrics, BucketsAreCumulative) {
  TimeHistogram h;
  h.add(0);
  h.add(0.00015);
  h.add(1e9);
  std::string text;
  h.write(text, "x", "y");
  EXPECT_NE(text.find("x_bucket{le=\"0.0001\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("x_bucket{le=\"0.0002\"} 2\n"), std::string::npos);
  EXPECT_NE(text.find("x_bucket{le=\"+Inf\"} 3\n"), std::string::npos);
  EXPECT_NE(text.find("x_count 3\n"), std::string::npos);
}

TEST(Metrics, NamesBothWays) {
  Metrics metrics;
  metrics.finished[0] = 4;
  Metrics::Now now{.model = "a\"b",
                   .counts = {.n_prompt = 9, .n_cached = 5},
                   .n_pages = 10,
                   .n_free_pages = 6,
                   .n_cached_pages = 3};
  const std::string text = metrics.text(now);
  EXPECT_NE(text.find("millrace_requests_total{finish=\"end\"} 4\n"), std::string::npos);
  EXPECT_NE(text.find("millrace_kv_pages{state=\"in_use\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("vllm:prefix_cache_hits_total{model_name=\"a\\\"b\"} 5\n"),
            std::string::npos);
  EXPECT_NE(text.find("vllm:kv_cache_usage_perc{model_name=\"a\\\"b\"} 0.1\n"), std::string::npos);
}

}  // namespace
}  // namespace millrace::serve
