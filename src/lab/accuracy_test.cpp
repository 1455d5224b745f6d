#include "lab/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>

namespace millrace::lab {
namespace {

TEST(Accuracy, DivergenceIsThatOfTheTwoDistributions) {
  const std::vector<float> p = {std::log(0.5f), std::log(0.25f), std::log(0.25f)};
  const std::vector<float> q = {std::log(0.25f), std::log(0.5f), std::log(0.25f)};
  const Divergence d = divergence_of(p, q);
  EXPECT_NEAR(d.kl, 0.5 * std::log(2) - 0.25 * std::log(2), 1e-7);
  EXPECT_FALSE(d.same_top);
}

TEST(Accuracy, EqualLogitsDoNotDiverge) {
  const std::vector<float> p = {3, -2, 0.5f, 3};
  const Divergence d = divergence_of(p, p);
  EXPECT_EQ(d.kl, 0);
  EXPECT_TRUE(d.same_top);
}

TEST(Accuracy, AShiftOfAllLogitsIsNoDifference) {
  const std::vector<float> p = {3, -2, 0.5f}, q = {103, 98, 100.5f};
  EXPECT_NEAR(divergence_of(p, q).kl, 0, 1e-12);
}

TEST(Accuracy, TheTextsArePartOfTheProgram) {
  const auto texts = sample_texts();
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0].name, "agent.txt");
  EXPECT_EQ(texts[1].name, "english.txt");
  for (const SampleText& text : texts) EXPECT_GT(text.text.size(), 8000u);
}

TEST(Accuracy, EveryRowIsFourMetricsOfItsOwnSubject) {
  const Accuracy row{"a.txt", "int8", "f16", 10, 0.5, 0.9, 7, 6};
  const auto metrics = metrics_of({row}, {"model", "m", "", "", "cpu", 2});
  ASSERT_EQ(metrics.size(), 4u);
  for (const Metric& metric : metrics)
    EXPECT_EQ(metric.subject,
              (Subject{"model", "m", "a.txt, 10 tokens", "int8 activations, f16 KV", "cpu", 2}));
  EXPECT_EQ(metrics[1].name, "same_top");
  EXPECT_EQ(metrics[1].value.mid, 90);
}

}  // namespace
}  // namespace millrace::lab
